package dev.space.e2b;

import tools.jackson.databind.JsonNode;

/// E2B's network settings. Guests have no network yet, so whatever would open it is refused rather
/// than silently not done; what closes it is already so.
final class Network {

  private Network() {}

  /// Checks a create. Its default, internet access for all, can't be had: it is taken as "whatever
  /// the server gives", since every SDK sends it unasked.
  static void refuseWhatIsNotEnforced(Body create) {
    refuse(create.inner("network"));
  }

  /// Checks an update, which nobody sends unasked.
  static void refuseUpdate(Body update) {
    refuse(update);
    if (update.flag("allow_internet_access").orElse(false)) {
      throw notYet("allow_internet_access: true");
    }
  }

  private static void refuse(Body network) {
    for (String opening : new String[] {"allowOut", "egressProxy", "rules", "httpsPorts"}) {
      if (network.raw(opening).filter(Network::says).isPresent()) {
        throw notYet(opening);
      }
    }
    if (network.text("maskRequestHost").isPresent()) {
      throw notYet("maskRequestHost");
    }
  }

  private static boolean says(JsonNode node) {
    return !node.isContainer() || !node.isEmpty();
  }

  private static E2bError notYet(String what) {
    return new E2bError(
        501,
        "network."
            + what
            + " is not supported: sandboxes have no network of their own; leave it out");
  }
}
