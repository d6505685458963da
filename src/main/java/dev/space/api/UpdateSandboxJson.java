package dev.space.api;

import dev.space.core.sandbox.UpdateSandbox;
import java.util.List;
import java.util.Map;
import java.util.Optional;

record UpdateSandboxJson(
    Optional<String> timeout,
    Optional<String> onTimeout,
    Optional<String> idleTimeout,
    Optional<Boolean> autoWake,
    Optional<Map<String, String>> metadata,
    Optional<List<Integer>> publicPorts) {
  UpdateSandbox change() {
    return new UpdateSandbox(
        timeout.map(text -> Calls.duration("timeout", text)),
        onTimeout.map(CreateSandboxJson::onTimeout),
        idleTimeout.map(text -> Calls.duration("idle_timeout", text)),
        autoWake,
        metadata.map(given -> Texts.map("metadata", Optional.of(given))),
        publicPorts.map(CreateSandboxJson::ports));
  }
}
