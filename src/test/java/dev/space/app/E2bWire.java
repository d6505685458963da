package dev.space.app;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.Message;
import dev.space.http.Json;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import tools.jackson.databind.JsonNode;

/// A service with simulated machines and a client that speaks E2B's protocol to it, below any SDK.
final class E2bWire implements AutoCloseable {

  private static final Duration CALL = Duration.ofSeconds(30);

  private final Daemon daemon;
  private final HttpClient client = HttpClient.newHttpClient();
  private final String url;
  private final String key;

  /// A sandbox and the headers that lead into it.
  record Box(String id, Map<String, String> headers) {}

  record Answer(int status, Map<String, String> headers, byte[] body) {
    JsonNode json() {
      return Json.mapper().readTree(body);
    }
  }

  private E2bWire(Daemon daemon, Path data) throws IOException {
    this.daemon = daemon;
    this.url = daemon.e2bUrl().orElseThrow();
    this.key = Files.readString(data.resolve("api-key")).strip();
  }

  static E2bWire start(Path data, Map<String, String> settings) throws IOException {
    Map<String, String> flags = new HashMap<>(settings);
    flags.put("data_dir", data.toString());
    flags.put("vmm", "simulated");
    flags.put("listen", "127.0.0.1:0");
    flags.put("data_listen", "127.0.0.1:0");
    flags.put("e2b.listen", "127.0.0.1:0");
    Path home = Path.of("").toAbsolutePath();
    SpaceConfig config = ConfigReader.read(Optional.empty(), Map.of(), flags, home);
    return new E2bWire(Daemon.start(config, home, System.getenv(), false), data);
  }

  String url() {
    return url;
  }

  String key() {
    return key;
  }

  int tlsPort() {
    return URI.create(daemon.e2bTlsUrl().orElseThrow()).getPort();
  }

  /// A call of the control plane; an empty body is none.
  Answer control(String method, String path, String body) {
    return call(
        method,
        path,
        Map.of("X-API-KEY", key, "Content-Type", "application/json"),
        body.isEmpty()
            ? HttpRequest.BodyPublishers.noBody()
            : HttpRequest.BodyPublishers.ofString(body));
  }

  Box create(String body) {
    Answer made = control("POST", "/v2/sandboxes", body);
    assertThat(made.status()).as(() -> new String(made.body(), UTF_8)).isEqualTo(201);
    String id = made.json().path("sandboxID").asString();
    return new Box(
        id,
        Map.of(
            "E2b-Sandbox-Id",
            id,
            "E2b-Sandbox-Port",
            "49983",
            "X-Access-Token",
            made.json().path("envdAccessToken").asString()));
  }

  /// A call with a binary body whose answer is read to its end.
  Answer call(
      String method, String path, Map<String, String> headers, HttpRequest.BodyPublisher body) {
    try {
      HttpResponse<byte[]> answer =
          client.send(
              request(method, path, headers, body), HttpResponse.BodyHandlers.ofByteArray());
      Map<String, String> got = new HashMap<>();
      answer.headers().map().forEach((name, values) -> got.put(name, values.getFirst()));
      return new Answer(answer.statusCode(), got, answer.body());
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private HttpRequest request(
      String method, String path, Map<String, String> headers, HttpRequest.BodyPublisher body) {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create(url + path)).timeout(CALL).method(method, body);
    headers.forEach(request::header);
    return request.build();
  }

  /// A unary Connect call in the binary codec.
  Answer unary(Box box, String rpc, Message request) {
    return call(
        "POST",
        "/" + rpc,
        with(box, "application/proto"),
        HttpRequest.BodyPublishers.ofByteArray(request.toByteArray()));
  }

  private static Map<String, String> with(Box box, String type) {
    Map<String, String> headers = new HashMap<>(box.headers());
    headers.put("Content-Type", type);
    headers.put("Connect-Protocol-Version", "1");
    return headers;
  }

  /// Opens a Connect stream in the binary codec.
  Streamed stream(Box box, String rpc, Message... requests) throws Exception {
    var body = new ByteArrayOutputStream();
    for (Message request : requests) {
      byte[] bytes = request.toByteArray();
      body.write(ByteBuffer.allocate(5).put((byte) 0).putInt(bytes.length).array());
      body.write(bytes);
    }
    HttpResponse<InputStream> answer =
        client.send(
            request(
                "POST",
                "/" + rpc,
                with(box, "application/connect+proto"),
                HttpRequest.BodyPublishers.ofByteArray(body.toByteArray())),
            HttpResponse.BodyHandlers.ofInputStream());
    assertThat(answer.statusCode()).isEqualTo(200);
    assertThat(answer.headers().firstValue("Content-Type")).contains("application/connect+proto");
    return new Streamed(new DataInputStream(answer.body()));
  }

  /// An open stream.
  record Streamed(DataInputStream in) implements AutoCloseable {

    /// @param end whether it is the last envelope, which is JSON
    record Envelope(boolean end, byte[] body) {}

    Envelope next() throws IOException {
      int flags = in.readUnsignedByte();
      byte[] body = in.readNBytes(in.readInt());
      return new Envelope(flags == 2, body);
    }

    @Override
    public void close() throws IOException {
      in.close();
    }
  }

  @Override
  public void close() {
    client.shutdownNow();
    daemon.close();
  }
}
