package dev.space.api;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.sandbox.CreateSandbox;
import dev.space.core.sandbox.OnTimeout;
import dev.space.core.template.TemplateRef;
import dev.space.http.Shown;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;

record CreateSandboxJson(
    Optional<String> template,
    Optional<String> snapshotId,
    Optional<Shape> resources,
    Optional<Map<String, String>> env,
    Optional<Map<String, String>> metadata,
    Optional<String> timeout,
    Optional<String> onTimeout,
    Optional<String> idleTimeout,
    Optional<Boolean> autoWake,
    Optional<List<Integer>> publicPorts) {

  record Shape(Optional<Integer> vcpus, Optional<Integer> memoryMib, Optional<Integer> diskMib) {}

  CreateSandbox request() {
    return new CreateSandbox(
        source(),
        resources.flatMap(Shape::vcpus),
        resources.flatMap(Shape::memoryMib),
        resources.flatMap(Shape::diskMib),
        Texts.map("env", env),
        Texts.map("metadata", metadata),
        timeout.map(text -> Calls.duration("timeout", text)).filter(d -> !d.isZero()),
        onTimeout.map(CreateSandboxJson::onTimeout).orElse(OnTimeout.DELETE),
        idleTimeout.map(text -> Calls.duration("idle_timeout", text)).filter(d -> !d.isZero()),
        autoWake.orElse(false),
        publicPorts.map(CreateSandboxJson::ports).orElse(Set.of()));
  }

  private CreateSandbox.Source source() {
    if (template.isPresent() == snapshotId.isPresent()) {
      throw Problem.of(
              ErrorCode.INVALID_REQUEST,
              template.isPresent()
                  ? "Both 'template' and 'snapshot_id' are given"
                  : "Neither 'template' nor 'snapshot_id' is given")
          .remedy("Give one of them, such as {\"template\": \"base\"}.")
          .toException();
    }
    if (template.isPresent()) {
      return new CreateSandbox.Source.FromTemplate(TemplateRef.parse(template.get()));
    }
    return new CreateSandbox.Source.FromSnapshot(snapshotId.orElseThrow());
  }

  static Set<Integer> ports(List<Integer> given) {
    if (given.stream().anyMatch(Objects::isNull)) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "The field 'public_ports' holds a null")
          .remedy("Give numbers of ports, such as [8080].")
          .toException();
    }
    return Set.copyOf(given);
  }

  static OnTimeout onTimeout(String text) {
    return switch (text) {
      case "delete" -> OnTimeout.DELETE;
      case "suspend" -> OnTimeout.SUSPEND;
      case "suspend_disk" -> OnTimeout.SUSPEND_DISK;
      default ->
          throw Problem.of(
                  ErrorCode.INVALID_REQUEST, "The field 'on_timeout' is '" + Shown.of(text) + "'")
              .remedy("Use delete, suspend or suspend_disk.")
              .toException();
    };
  }
}
