package dev.space.vmm.qemu;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.host.Command;
import dev.space.host.Processes;
import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Version of a QEMU.
///
/// @param full as it names itself, such as `7.2.22`
record QemuVersion(int major, int minor, String full) {

  private static final Pattern LINE =
      Pattern.compile("QEMU emulator version ((\\d{1,4})\\.(\\d{1,4})[0-9.]{0,12})");

  /// The oldest that is tested.
  private static final int OLDEST_MAJOR = 7;

  static QemuVersion of(Processes processes, String binary) {
    QemuVersion version =
        parse(processes.run(Command.of(Duration.ofSeconds(20), binary, "--version")).said());
    if (!version.atLeast(OLDEST_MAJOR, 2)) {
      throw Problem.of(
              ErrorCode.PREREQUISITE_MISSING,
              "QEMU " + version.full() + " is too old, 7.2 is needed.")
          .remedy("Install qemu-system-x86 7.2 or newer.")
          .toException();
    }
    return version;
  }

  static QemuVersion parse(String text) {
    Matcher m = LINE.matcher(text);
    if (!m.lookingAt()) {
      throw Problem.of(ErrorCode.PREREQUISITE_MISSING, "This is no QEMU: '" + text.strip() + "'")
          .remedy("Set vmm.qemu.binary to a qemu-system-x86_64.")
          .toException();
    }
    return new QemuVersion(Integer.parseInt(m.group(2)), Integer.parseInt(m.group(3)), m.group(1));
  }

  boolean atLeast(int wantedMajor, int wantedMinor) {
    return major > wantedMajor || (major == wantedMajor && minor >= wantedMinor);
  }
}
