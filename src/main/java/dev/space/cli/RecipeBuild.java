package dev.space.cli;

import dev.space.wire.WireRequest;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Path;
import java.util.OptionalLong;
import java.util.UUID;
import tools.jackson.databind.JsonNode;

/// Sends a recipe to the service and waits until the template is built.
final class RecipeBuild {

  private RecipeBuild() {}

  /// @param recipe the folder
  /// @param shown whether progress is shown
  /// @return the operation, which has succeeded
  /// @throws dev.space.core.error.SpaceException the operation's own error when it failed
  static JsonNode run(Api api, Path recipe, String tag, Progress progress, boolean shown) {
    JsonNode accepted;
    try (InputStream tar = TarStreams.pack(recipe)) {
      WireRequest request =
          api.request("POST", "/v1/templates?tag=" + Api.part(tag))
              .header("Idempotency-Key", UUID.randomUUID().toString())
              .header("Content-Type", "application/x-tar")
              .body(new WireRequest.Body.Stream(tar, OptionalLong.empty()));
      accepted = api.json(request);
    } catch (IOException e) {
      throw TarStreams.unreadable(recipe, e);
    }
    return Operations.await(api, accepted, progress, shown);
  }
}
