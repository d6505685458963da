package dev.space.vmm.firecracker;

import dev.space.core.vm.VmExit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Why a Firecracker process ended. Nobody is its parent that could wait(2) for it, across restarts
/// of the daemon and in a process id namespace of its own, so its last words say it: it logs its
/// exit status, and the signals it catches.
final class ExitCause {

  private static final Pattern STATUS = Pattern.compile("exit_code=(\\d{1,3})");
  private static final Pattern SIGNAL = Pattern.compile("intercepting signal (\\d{1,2})");

  private ExitCause() {}

  /// Makes out of its status, log and console why a process ended that the host didn't end.
  ///
  /// @param status what [#status] makes of the log
  static VmExit of(int status, String log, String console) {
    if (console.contains("Kernel panic")) {
      return new VmExit(VmExit.Kind.PANICKED, withConsole("the guest's kernel panicked", console));
    }
    return switch (status) {
      case 0 ->
          new VmExit(
              VmExit.Kind.STOPPED, withConsole("the guest powered off or rebooted", console));
      case -1 -> died("Firecracker ended without a word", log);
      default -> died(cause(status) + " (exit status " + status + ")", log);
    };
  }

  private static VmExit died(String what, String log) {
    return new VmExit(VmExit.Kind.VMM_DIED, log.isBlank() ? what : what + "; it said: " + log);
  }

  private static String withConsole(String what, String console) {
    return console.isBlank() ? what : what + "; its console ends with:\n" + console;
  }

  /// The last status that a log tells, or -1.
  static int status(String log) {
    int status = -1;
    Matcher m = STATUS.matcher(log);
    while (m.find()) {
      status = Integer.parseInt(m.group(1));
    }
    if (status >= 0) {
      return status;
    }
    if (log.contains("intercepting a bad syscall")) {
      return 148;
    }
    Matcher signal = SIGNAL.matcher(log);
    return signal.find() ? ofSignal(Integer.parseInt(signal.group(1))) : -1;
  }

  private static int ofSignal(int number) {
    return switch (number) {
      case 7 -> 149;
      case 31 -> 148;
      case 11 -> 150;
      case 25 -> 151;
      case 24 -> 154;
      case 13 -> 155;
      case 1 -> 156;
      case 4 -> 157;
      default -> 2;
    };
  }

  /// What a status of Firecracker's means.
  static String cause(int status) {
    return switch (status) {
      case 1 -> "Firecracker failed";
      case 2 -> "Firecracker met an error that it doesn't know";
      case 148 -> "Firecracker made a forbidden system call: its guest may have taken it over";
      case 149 -> "the guest's memory could not be read (SIGBUS): its file is gone or its disk bad";
      case 150 -> "Firecracker crashed (SIGSEGV)";
      case 151 -> "a file of the VM's grew over its limit (SIGXFSZ)";
      case 152 -> "Firecracker refused its configuration";
      case 153 -> "Firecracker refused its arguments";
      case 154 -> "the VM used up its CPU time (SIGXCPU)";
      case 155 -> "Firecracker wrote to a closed pipe (SIGPIPE)";
      case 156 -> "Firecracker was hung up (SIGHUP)";
      case 157 -> "Firecracker met a bad instruction (SIGILL)";
      default -> "Firecracker ended with an unknown status";
    };
  }
}
