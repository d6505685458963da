package dev.space.http;

import java.io.InputStream;
import java.io.OutputStream;

/// The raw bytes of a connection after an upgrade. One thread reads while another writes.
public interface Tunnel {
  /// What the client sends, beginning with what it sent before it saw the 101.
  InputStream in();

  /// What goes to the client, at once. Closing it half-closes the connection.
  OutputStream out();

  /// Cuts the connection; blocked reads and writes fail.
  void abort();
}
