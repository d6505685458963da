package dev.space.e2b;

import dev.space.core.sandbox.Sandbox;
import dev.space.core.sandbox.SandboxState;
import dev.space.http.Json;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;

/// Sandboxes in E2B's words. Fields that its Python SDK requires are always there; those that may
/// be absent are left out rather than null.
final class Views {

  /// The version of E2B's in-sandbox server whose behaviour is offered.
  static final String ENVD_VERSION = "0.6.13";

  /// Deprecated by E2B, required by its Python SDK.
  private static final String CLIENT_ID = "6532622b";

  /// What stands for "never" where E2B wants an end.
  private static final Duration ENDLESS = Duration.ofDays(365);

  private final EnvdAccess access;
  private final Optional<String> domain;

  Views(EnvdAccess access, Optional<String> domain) {
    this.access = access;
    this.domain = domain;
  }

  /// The answer to create, connect, resume and fork.
  Map<String, Object> sandbox(Sandbox sandbox) {
    Notes.Settings notes = Notes.of(sandbox);
    Map<String, Object> view = new LinkedHashMap<>();
    view.put("sandboxID", sandbox.id());
    view.put("templateID", templateId(sandbox));
    view.put("clientID", CLIENT_ID);
    view.put("envdVersion", ENVD_VERSION);
    if (!notes.insecure()) {
      view.put("envdAccessToken", access.envdToken(sandbox.id()));
    }
    if (notes.privatePorts()) {
      view.put("trafficAccessToken", access.trafficToken(sandbox.id()));
    }
    domain.ifPresent(d -> view.put("domain", d));
    view.put("alias", alias(sandbox));
    return view;
  }

  /// One entry of a list.
  Map<String, Object> listed(Sandbox sandbox) {
    Map<String, Object> view = new LinkedHashMap<>();
    view.put("sandboxID", sandbox.id());
    view.put("templateID", templateId(sandbox));
    view.put("alias", alias(sandbox));
    view.put("clientID", CLIENT_ID);
    view.put("startedAt", sandbox.createdAt().truncatedTo(ChronoUnit.MICROS).toString());
    view.put(
        "endAt",
        sandbox
            .expiresAt()
            .orElse(sandbox.createdAt().plus(ENDLESS))
            .truncatedTo(ChronoUnit.MICROS)
            .toString());
    view.put("cpuCount", sandbox.resources().vcpus());
    view.put("memoryMB", sandbox.resources().memoryMib());
    view.put("diskSizeMB", sandbox.resources().diskMib());
    view.put("state", state(sandbox.state()));
    view.put("envdVersion", ENVD_VERSION);
    view.put("metadata", Notes.visible(sandbox));
    return view;
  }

  /// The answer to a get.
  Map<String, Object> detail(Sandbox sandbox) {
    Map<String, Object> view = listed(sandbox);
    if (!Notes.of(sandbox).insecure()) {
      view.put("envdAccessToken", access.envdToken(sandbox.id()));
    }
    domain.ifPresent(d -> view.put("domain", d));
    view.put("allowInternetAccess", false);
    Notes.of(sandbox).network().ifPresent(n -> view.put("network", Json.mapper().readTree(n)));
    view.put(
        "lifecycle",
        Map.of(
            "onTimeout",
            sandbox.onTimeout().suspends() ? "pause" : "kill",
            "autoResume",
            sandbox.autoWake()));
    return view;
  }

  /// E2B has two states; one that is on its way counts as what it will be.
  static String state(SandboxState state) {
    return switch (state) {
      case PAUSED, SUSPENDING, SUSPENDED -> "paused";
      case CREATING, RUNNING, PAUSING, RESUMING, WAKING, STOPPED, FAILED, DELETING, DELETED ->
          "running";
    };
  }

  private static String templateId(Sandbox sandbox) {
    return sandbox.snapshotId().orElse(sandbox.template());
  }

  private static String alias(Sandbox sandbox) {
    String template = sandbox.template();
    int colon = template.lastIndexOf(':');
    return template.startsWith("sha256:") || colon < 0 ? template : template.substring(0, colon);
  }
}
