package dev.space.cli;

import java.io.ByteArrayOutputStream;

/// Watches what is typed for `~.` at the beginning of a line, which leaves the session, as with
/// ssh. `~~` there is one tilde.
final class DetachKeys {

  private boolean lineBegins = true;
  private boolean held;
  private boolean detach;

  /// What of these bytes goes to the session.
  byte[] typed(byte[] bytes, int count) {
    var out = new ByteArrayOutputStream(count + 1);
    for (int i = 0; i < count && !detach; i++) {
      byte b = bytes[i];
      if (held) {
        held = false;
        if (b == '.') {
          detach = true;
        } else {
          out.write('~');
          if (b != '~') {
            out.write(b);
          }
        }
      } else if (b == '~' && lineBegins) {
        held = true;
      } else {
        out.write(b);
      }
      lineBegins = b == '\r' || b == '\n';
    }
    return out.toByteArray();
  }

  boolean detach() {
    return detach;
  }
}
