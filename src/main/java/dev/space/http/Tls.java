package dev.space.http;

import java.nio.file.Path;

/// What a listener proves itself with. Files are read at the start of the server.
///
/// @param certificate PEM: the server's certificate, then those between it and its authority
/// @param key PEM: its private key, PKCS #8, without a password
public record Tls(Path certificate, Path key) {}
