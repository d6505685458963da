package dev.space.wire;

import dev.space.wire.WireException.Fault;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/// An answer whose head was read. It holds the connection until it is closed.
public final class WireResponse implements AutoCloseable {

  private final int status;
  private final Headers headers;
  private final InputStream body;
  private final Connection connection;

  WireResponse(int status, Headers headers, InputStream body, Connection connection) {
    this.status = status;
    this.headers = headers;
    this.body = body;
    this.connection = connection;
  }

  public int status() {
    return status;
  }

  public Headers headers() {
    return headers;
  }

  /// The body as it comes.
  public InputStream body() {
    return body;
  }

  /// The whole body.
  ///
  /// @param bytesMax a longer body is an error
  public byte[] bytes(int bytesMax) throws IOException {
    byte[] all = body.readNBytes(bytesMax);
    if (all.length == bytesMax && body.read() >= 0) {
      throw new WireException(Fault.MALFORMED, "the answer is longer than " + bytesMax + " bytes");
    }
    return all;
  }

  /// The whole body as text.
  public String text(int bytesMax) throws IOException {
    return new String(bytes(bytesMax), StandardCharsets.UTF_8);
  }

  /// The body as server-sent events.
  public EventReader events() {
    return new EventReader(body);
  }

  @Override
  public void close() {
    connection.close();
  }
}
