package dev.space.vmm.firecracker;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.host.Command;
import dev.space.host.Processes;
import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Version of a Firecracker.
///
/// @param full as it names itself, such as `1.16.1`
/// @param snapshotFormat version of the snapshots it writes, such as `10.0.0`
record FirecrackerVersion(int major, int minor, int patch, String full, String snapshotFormat) {

  /// Guests that 1.16.0 restored can't open connections to their host; older ones are out of
  /// support.
  private static final int[] OLDEST = {1, 16, 1};

  private static final Duration DEADLINE = Duration.ofSeconds(20);
  private static final Pattern VERSION =
      Pattern.compile("Firecracker v((\\d{1,4})\\.(\\d{1,4})\\.(\\d{1,4})[0-9A-Za-z.-]{0,40})");
  private static final Pattern FORMAT = Pattern.compile("v?(\\d{1,5}\\.\\d{1,5}\\.\\d{1,5})");

  /// Asks the installed one.
  ///
  /// @throws dev.space.core.error.SpaceException PREREQUISITE_MISSING when there is none, or one
  ///   that is too old
  static FirecrackerVersion of(Processes processes, String binary) {
    FirecrackerVersion version =
        parse(
            processes.run(Command.of(DEADLINE, binary, "--version")).said(),
            processes.run(Command.of(DEADLINE, binary, "--snapshot-version")).said());
    if (!version.atLeast(OLDEST[0], OLDEST[1], OLDEST[2])) {
      throw Problem.of(
              ErrorCode.PREREQUISITE_MISSING,
              "Firecracker " + version.full() + " is too old, 1.16.1 is needed.")
          .because("older ones are out of support or lose a restored guest's connections")
          .remedy("Install Firecracker 1.16.1 or newer, and the jailer of the same release.")
          .toException();
    }
    return version;
  }

  static FirecrackerVersion parse(String version, String format) {
    Matcher v = VERSION.matcher(version);
    Matcher f = FORMAT.matcher(format);
    if (!v.find() || !f.find()) {
      throw Problem.of(
              ErrorCode.PREREQUISITE_MISSING, "This is no Firecracker: '" + version.strip() + "'")
          .remedy("Set firecracker.binary to a Firecracker of 1.16.1 or newer.")
          .toException();
    }
    return new FirecrackerVersion(
        Integer.parseInt(v.group(2)),
        Integer.parseInt(v.group(3)),
        Integer.parseInt(v.group(4)),
        v.group(1),
        f.group(1));
  }

  boolean atLeast(int wantedMajor, int wantedMinor, int wantedPatch) {
    if (major != wantedMajor) {
      return major > wantedMajor;
    }
    return minor != wantedMinor ? minor > wantedMinor : patch >= wantedPatch;
  }

  /// Snapshots are bound to this: any change of state raises the format, and nobody promises more.
  String release() {
    return major + "." + minor;
  }
}
