package dev.space.api;

import java.util.Optional;
import java.util.function.IntSupplier;
import java.util.function.Supplier;

/// What the assembly tells the API.
///
/// @param dataUrl base of the data plane's URLs without a trailing slash; empty means the host the
///   caller used and `dataPort`
/// @param dataPort where the data plane listens
/// @param version of this build
/// @param vmmVersion of the driver's VMM, for people
/// @param notReady why the service can't take work yet; empty when it can
public record ApiSettings(
    Optional<String> dataUrl,
    IntSupplier dataPort,
    String version,
    String vmmVersion,
    Supplier<Optional<String>> notReady) {}
