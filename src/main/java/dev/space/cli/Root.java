package dev.space.cli;

import dev.space.app.ConfigReader;
import dev.space.app.SpaceConfig;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;

/// The command `space` itself: the options that every command understands.
@Command(
    name = "space",
    description = "Isolated Linux sandboxes in microVMs.",
    synopsisSubcommandLabel = "COMMAND",
    footerHeading = "%nExamples:%n",
    footer = {
      "  space run -- python3 -c 'print(6*7)'   a command in a fresh sandbox",
      "  space serve                            the service, on 127.0.0.1:8700",
      "  space sandbox create -t base           a sandbox that stays",
      "  space exec ID -- ls -l                 a command in it",
      "",
      "The service is found by itself on this machine; else set SPACE_URL and SPACE_API_KEY.",
      "docs/cli.md describes every command."
    })
final class Root implements Runnable {

  private final Surroundings surroundings;
  private final Assembly assembly;

  @Option(
      names = {"-o", "--output"},
      scope = ScopeType.INHERIT,
      defaultValue = "table",
      paramLabel = "FORMAT",
      description = "How to print results: table or json.")
  private Printer.Format format = Printer.Format.TABLE;

  @Option(
      names = "--url",
      scope = ScopeType.INHERIT,
      paramLabel = "URL",
      description = "Where the service is.")
  private Optional<String> url = Optional.empty();

  @Option(
      names = "--data-dir",
      scope = ScopeType.INHERIT,
      paramLabel = "DIR",
      description = "Data directory of the service on this machine.")
  private Optional<Path> dataDir = Optional.empty();

  @Option(
      names = {"-h", "--help"},
      scope = ScopeType.INHERIT,
      usageHelp = true,
      description = "Show this help.")
  private boolean help;

  @Option(
      names = {"-V", "--version"},
      versionHelp = true,
      description = "Show the version.")
  private boolean version;

  @Spec private @org.jspecify.annotations.Nullable CommandSpec spec;

  Root(Surroundings surroundings, Assembly assembly) {
    this.surroundings = surroundings;
    this.assembly = assembly;
  }

  /// The service as this process can run it.
  Assembly assembly() {
    return assembly;
  }

  /// The service's configuration: these flags, the environment, then the file.
  SpaceConfig config(Optional<Path> file, Map<String, String> flags) {
    Map<String, String> all = new LinkedHashMap<>(flags);
    dataDir.ifPresent(dir -> all.put("data_dir", dir.toString()));
    Optional<Path> chosen = file.or(() -> surroundings.variable("SPACE_CONFIG").map(Path::of));
    return ConfigReader.read(chosen, surroundings.env(), all, surroundings.home());
  }

  /// Calls of the data plane.
  Api dataApi() {
    Location location = location();
    return new Api(location.dataUrl(), location.key());
  }

  Surroundings surroundings() {
    return surroundings;
  }

  Location location() {
    return new Location(surroundings, url, dataDir);
  }

  Api api() {
    Location location = location();
    return new Api(location.url(), location.key());
  }

  Printer printer() {
    return new Printer(surroundings.out(), format);
  }

  Progress progress() {
    return new Progress(surroundings, format == Printer.Format.JSON);
  }

  boolean json() {
    return format == Printer.Format.JSON;
  }

  @Override
  public void run() {
    CommandSpec mine = spec;
    if (mine == null) {
      throw new IllegalStateException("picocli sets the spec before it runs a command");
    }
    throw new ParameterException(
        mine.commandLine(), help || version ? "" : "Which command? See the list below.");
  }
}
