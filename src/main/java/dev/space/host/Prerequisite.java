package dev.space.host;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/// One thing that the service needs of its host, as it was found.
///
/// @param name what it is, for people and scripts; doesn't change
/// @param found what is there, in a few words
/// @param remedy what to do, when it isn't as it should be
/// @param debPackage the Debian package that brings it
public record Prerequisite(
    String name, State state, String found, Optional<String> remedy, Optional<String> debPackage) {

  /// WARN is worth knowing, but the service works; MISSING keeps it from working.
  public enum State {
    OK,
    WARN,
    MISSING
  }

  public static Prerequisite ok(String name, String found) {
    return new Prerequisite(name, State.OK, found, Optional.empty(), Optional.empty());
  }

  public static Prerequisite warn(String name, String found, String remedy) {
    return new Prerequisite(name, State.WARN, found, Optional.of(remedy), Optional.empty());
  }

  public static Prerequisite missing(String name, String found, String remedy) {
    return new Prerequisite(name, State.MISSING, found, Optional.of(remedy), Optional.empty());
  }

  /// What a Debian package brings and isn't there.
  public static Prerequisite missingPackage(String name, String found, String debPackage) {
    return new Prerequisite(
        name,
        State.MISSING,
        found,
        Optional.of(installCommand(List.of(debPackage))),
        Optional.of(debPackage));
  }

  /// The one command that installs these packages.
  public static String installCommand(List<String> debPackages) {
    return "apt-get update && apt-get install -y --no-install-recommends "
        + debPackages.stream().distinct().sorted().collect(Collectors.joining(" "));
  }

  /// The Debian packages that are missing, each once.
  public static List<String> missingPackages(List<Prerequisite> all) {
    return all.stream()
        .filter(p -> p.state() == State.MISSING)
        .flatMap(p -> p.debPackage().stream())
        .distinct()
        .sorted()
        .toList();
  }

  /// One error that names everything missing and what to do, or nothing when all is there.
  public static Optional<Problem> problem(List<Prerequisite> all) {
    List<Prerequisite> missing = all.stream().filter(p -> p.state() == State.MISSING).toList();
    if (missing.isEmpty()) {
      return Optional.empty();
    }
    List<String> remedies = new ArrayList<>();
    List<String> packages = missingPackages(all);
    if (!packages.isEmpty()) {
      remedies.add("Run as root: " + installCommand(packages));
    }
    missing.stream()
        .filter(p -> p.debPackage().isEmpty())
        .flatMap(p -> p.remedy().stream())
        .distinct()
        .forEach(remedies::add);
    return Optional.of(
        Problem.of(
                ErrorCode.PREREQUISITE_MISSING,
                "this machine lacks "
                    + missing.stream().map(Prerequisite::name).collect(Collectors.joining(", ")))
            .because(
                missing.stream()
                    .map(p -> p.name() + ": " + p.found())
                    .collect(Collectors.joining("; ")))
            .remedy(String.join("\nthen: ", remedies)));
  }
}
