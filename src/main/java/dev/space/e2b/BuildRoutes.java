package dev.space.e2b;

import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationService;
import dev.space.core.template.Template;
import dev.space.core.template.TemplateRef;
import dev.space.core.template.TemplateService;
import dev.space.http.Exchange;
import dev.space.http.Json;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.GZIPInputStream;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveInputStream;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;

/// Template builds over E2B's control plane: steps become a recipe, which is built as any other.
/// Builds that were asked for are known until the service stops; templates stay.
final class BuildRoutes {

  private static final int BUILDS_MAX = 1000;
  private static final int LOG_PAGE = 100;
  private static final int STEPS_MAX = 150;
  private static final Pattern BASE_IMAGE =
      Pattern.compile("(?:docker\\.io/)?e2bdev/(?:base|code-interpreter)(?::latest)?");
  private static final Pattern DEBIAN =
      Pattern.compile("(?:docker\\.io/)?(?:library/)?debian:([a-z]+)(?:-slim)?");

  private final TemplateService templates;
  private final OperationService operations;
  private final Uploads uploads;
  private final EnvdAccess access;
  private final InstantSource clock;
  private final Map<String, Build> builds =
      new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Build> eldest) {
          return size() > BUILDS_MAX;
        }
      };

  /// @param more further tags, set when it is ready
  /// @param operation what builds it, once that was asked for
  private record Build(
      String id,
      String project,
      TemplateRef.Tagged as,
      List<String> more,
      Map<String, Object> resources,
      Optional<String> operation) {

    Build by(String operationId) {
      return new Build(id, project, as, more, resources, Optional.of(operationId));
    }
  }

  BuildRoutes(
      TemplateService templates,
      OperationService operations,
      Uploads uploads,
      EnvdAccess access,
      InstantSource clock) {
    this.templates = templates;
    this.operations = operations;
    this.uploads = uploads;
    this.access = access;
    this.clock = clock;
  }

  void request(Exchange exchange, Caller caller) {
    Body body = Body.read(exchange);
    String name =
        body.text("name")
            .or(() -> body.text("alias"))
            .orElseThrow(() -> new E2bError(400, "name is required"));
    TemplateRef.Tagged as = tagged(name);
    List<String> tags = new ArrayList<>();
    body.raw("tags").ifPresent(all -> all.forEach(tag -> tags.add(tag.asString())));
    if (!tags.isEmpty() && !name.contains(":")) {
      as = tagged(as.name() + ":" + tags.removeFirst());
    }
    for (String tag : tags) {
      tagged(as.name() + ":" + tag);
    }
    Map<String, Object> resources = new LinkedHashMap<>();
    put(resources, "vcpus", body.number("cpuCount", 1, 32));
    put(resources, "memory_mib", body.number("memoryMB", 128, 1 << 20));
    Build build =
        new Build(
            UUID.randomUUID().toString(),
            caller.project(),
            as,
            List.copyOf(tags),
            resources,
            Optional.empty());
    keep(build);
    List<String> all = new ArrayList<>(List.of(as.tag()));
    all.addAll(tags);
    Map<String, Object> answer = new LinkedHashMap<>();
    answer.put("templateID", as.name());
    answer.put("buildID", build.id());
    answer.put("public", false);
    answer.put("aliases", List.of(as.name()));
    String base = as.name();
    answer.put("names", all.stream().map(tag -> base + ":" + tag).toList());
    answer.put("tags", all);
    Json.send(exchange, 202, answer);
  }

  private static void put(Map<String, Object> map, String name, OptionalInt value) {
    if (value.isPresent()) {
      map.put(name, value.getAsInt());
    }
  }

  private static TemplateRef.Tagged tagged(String text) {
    try {
      if (TemplateRef.parse(text) instanceof TemplateRef.Tagged tagged) {
        return tagged;
      }
    } catch (SpaceException e) {
      throw new E2bError(400, e.problem().oneLine());
    }
    throw new E2bError(400, "'" + text + "' is no name");
  }

  private void keep(Build build) {
    synchronized (builds) {
      builds.put(build.id(), build);
    }
  }

  private Build find(Exchange exchange, Caller caller) {
    String id = exchange.pathVariable("build");
    Build build;
    synchronized (builds) {
      build = builds.get(id);
    }
    if (build == null || !build.project().equals(caller.project())) {
      throw new E2bError(404, "build '" + id + "' not found");
    }
    return build;
  }

  // -- files

  /// Whether the files are there, and where to put them if not.
  void files(Exchange exchange, Caller caller) {
    String hash = exchange.pathVariable("hash");
    Map<String, Object> answer = new LinkedHashMap<>();
    answer.put("present", uploads.has(caller.project(), hash));
    answer.put(
        "url",
        exchange.scheme()
            + "://"
            + exchange.host().orElse("127.0.0.1")
            + "/templates/"
            + URLEncoder.encode(exchange.pathVariable("id"), StandardCharsets.UTF_8)
            + "/files/"
            + hash
            + "?project="
            + caller.project()
            + "&token="
            + access.uploadToken(caller.project(), hash));
    Json.send(exchange, 201, answer);
  }

  /// Takes files; who has the URL needs no key.
  void upload(Exchange exchange) {
    String hash = exchange.pathVariable("hash");
    String project = exchange.query().one("project").orElse("");
    if (!access.mayUpload(project, hash, exchange.query().one("token").orElse(""))) {
      throw new E2bError(403, "the upload's token is missing or wrong");
    }
    uploads.put(project, hash, exchange.body());
    exchange.status(200).sendEmpty();
  }

  // -- the build

  void start(Exchange exchange, Caller caller) {
    Build build = find(exchange, caller);
    Body body = Body.read(exchange);
    if (build.operation().isPresent()) {
      throw new E2bError(409, "build '" + build.id() + "' was started already");
    }
    if (body.raw("fromImageRegistry").isPresent()) {
      throw new E2bError(400, "images of private registries are not supported");
    }
    Map<String, Object> recipe = new LinkedHashMap<>();
    Optional<Template.Defaults> parent = from(body, caller, recipe);
    BuildSteps steps = new BuildSteps(parent);
    body.raw("steps")
        .ifPresent(
            all -> {
              if (all.size() > STEPS_MAX) {
                throw new E2bError(400, "a build has at most " + STEPS_MAX + " steps");
              }
              all.forEach(steps::add);
            });
    recipe.putAll(steps.recipe(text(body, "startCmd"), text(body, "readyCmd")));
    if (!build.resources().isEmpty()) {
      recipe.put("resources", build.resources());
    }
    Operation started = submit(caller, build, recipe, steps.hashes());
    keep(build.by(started.id()));
    exchange.status(202).sendEmpty();
  }

  private static Optional<String> text(Body body, String name) {
    return body.text(name).filter(text -> !text.isBlank());
  }

  /// Says in the recipe what it is built upon, and gives its defaults.
  private Optional<Template.Defaults> from(Body body, Caller caller, Map<String, Object> recipe) {
    Optional<String> image = text(body, "fromImage");
    Optional<String> debian =
        image.map(DEBIAN::matcher).filter(Matcher::matches).map(found -> found.group(1));
    if (debian.isPresent()) {
      recipe.put("from", debian.get());
      recipe.put("packages", List.of("bash", "ca-certificates"));
      return Optional.empty();
    }
    if (image.isPresent() && !BASE_IMAGE.matcher(image.get()).matches()) {
      throw new E2bError(
          400,
          "the image '"
              + image.get()
              + "' can't be built upon: use e2bdev/base, debian:RELEASE, or a template");
    }
    TemplateRef.Tagged ref = tagged(text(body, "fromTemplate").orElse("base"));
    try {
      Template template = templates.get(caller, ref);
      recipe.put("from", ref.toString());
      return Optional.of(template.defaults());
    } catch (SpaceException e) {
      if (e.code() == ErrorCode.TEMPLATE_NOT_FOUND) {
        throw new E2bError(404, "template '" + ref + "' not found");
      }
      throw e;
    }
  }

  private Operation submit(
      Caller caller, Build build, Map<String, Object> recipe, List<String> hashes) {
    Path tar = uploads.scratch();
    try {
      try (OutputStream file = Files.newOutputStream(tar);
          var out = new TarArchiveOutputStream(file)) {
        out.setLongFileMode(TarArchiveOutputStream.LONGFILE_POSIX);
        out.setBigNumberMode(TarArchiveOutputStream.BIGNUMBER_POSIX);
        byte[] yaml = Json.bytes(recipe);
        var entry = new TarArchiveEntry("template.yaml");
        entry.setSize(yaml.length);
        out.putArchiveEntry(entry);
        out.write(yaml);
        out.closeArchiveEntry();
        for (int i = 0; i < hashes.size(); i++) {
          try (InputStream in = uploads.open(build.project(), hashes.get(i))) {
            append(out, BuildSteps.folder(i) + "/", in);
          }
        }
      }
      try (InputStream in = Files.newInputStream(tar)) {
        return templates.build(caller, build.as(), in, Optional.empty());
      }
    } catch (IOException | IllegalArgumentException e) {
      throw new E2bError(400, "the uploaded files can't be read: " + e.getMessage());
    } catch (SpaceException e) {
      if (e.code() == ErrorCode.RECIPE_INVALID) {
        throw new E2bError(400, e.problem().oneLine());
      }
      throw e;
    } finally {
      try {
        Files.deleteIfExists(tar);
      } catch (IOException _) {
        // The next sweep finds it.
      }
    }
  }

  private static void append(TarArchiveOutputStream out, String folder, InputStream raw)
      throws IOException {
    var in = new BufferedInputStream(raw);
    in.mark(2);
    boolean gzip = in.read() == 0x1f && in.read() == 0x8b;
    in.reset();
    var top = new TarArchiveEntry(folder);
    out.putArchiveEntry(top);
    out.closeArchiveEntry();
    try (var tar = new TarArchiveInputStream(gzip ? new GZIPInputStream(in) : in)) {
      for (var entry = tar.getNextEntry(); entry != null; entry = tar.getNextEntry()) {
        if (out.getBytesWritten() + entry.getSize() > Uploads.BYTES_MAX) {
          throw new E2bError(
              413, "a build's files have at most " + (Uploads.BYTES_MAX >> 20) + " MiB");
        }
        entry.setName(folder + entry.getName().replaceFirst("^(\\./|/)+", ""));
        out.putArchiveEntry(entry);
        if (entry.isFile()) {
          tar.transferTo(out);
        }
        out.closeArchiveEntry();
      }
    }
  }

  // -- its end

  void status(Exchange exchange, Caller caller) {
    Build build = find(exchange, caller);
    long offset = exchange.query().one("logsOffset").map(BuildRoutes::whole).orElse(0L);
    Map<String, Object> answer = new LinkedHashMap<>();
    List<Map<String, Object>> entries = new ArrayList<>();
    String status = "waiting";
    if (build.operation().isPresent()) {
      Operation operation = operations.get(caller, build.operation().get(), Duration.ZERO);
      for (String line : templates.buildLogSoFar(caller, operation.id(), offset, LOG_PAGE)) {
        Map<String, Object> entry = new LinkedHashMap<>();
        entry.put("timestamp", clock.instant().toString());
        entry.put("level", line.startsWith("failed: ") ? "error" : "info");
        entry.put("message", line);
        entries.add(entry);
      }
      status =
          switch (operation.state()) {
            case PENDING -> "waiting";
            case RUNNING -> "building";
            case SUCCEEDED -> "ready";
            case FAILED, CANCELLED -> "error";
          };
      if (status.equals("ready")) {
        for (String tag : build.more()) {
          Template _ = templates.tag(caller, build.as(), tagged(build.as().name() + ":" + tag));
        }
      }
      operation
          .error()
          .map(Problem::oneLine)
          .ifPresent(why -> answer.put("reason", Map.of("message", why, "logEntries", List.of())));
    }
    answer.put("templateID", build.as().name());
    answer.put("buildID", build.id());
    answer.put("status", status);
    answer.put("logs", List.of());
    answer.put("logEntries", entries);
    Json.send(exchange, 200, answer);
  }

  private static long whole(String text) {
    try {
      return Math.max(0, Long.parseLong(text));
    } catch (NumberFormatException _) {
      throw new E2bError(400, "logsOffset must be a whole number");
    }
  }
}
