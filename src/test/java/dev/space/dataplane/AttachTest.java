package dev.space.dataplane;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.space.core.Ids;
import dev.space.core.Samples;
import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.OutputEvent.Stream;
import dev.space.core.guest.ProcessSpec.PtySize;
import dev.space.core.sandbox.SandboxState;
import dev.space.core.session.AttachmentToken;
import dev.space.core.session.CreateSession;
import dev.space.core.session.FakeHost;
import dev.space.core.session.ScriptedGuest;
import dev.space.core.session.SessionService;
import dev.space.core.session.SessionTicket;
import dev.space.core.store.Store;
import dev.space.http.Router;
import dev.space.http.TestServer;
import dev.space.node.log.DiskOutputLogs;
import dev.space.node.log.LogBounds;
import dev.space.store.SqliteStore;
import dev.space.wire.EventReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.WebSocket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AttachTest {

  private static final Caller CALLER = new Caller("p", "k1", "r1");
  private static final String BOX = "i0000000000000000001";

  @TempDir private Path root;
  private final HttpClient http = HttpClient.newHttpClient();
  private final FakeHost host = new FakeHost();
  private final ScriptedGuest guest = new ScriptedGuest();
  private Store store = unset();
  private SessionService sessions = unset();
  private TestServer server = unset();

  @SuppressWarnings({"NullAway", "TypeParameterUnusedInFormals"}) // Set before each test.
  private static <T> T unset() {
    return null;
  }

  @BeforeEach
  void open() {
    host.add(BOX, guest);
    store = SqliteStore.open(root.resolve("data"));
    sessions =
        new SessionService(
            host,
            store,
            new DiskOutputLogs(root.resolve("sessions"), LogBounds.DEFAULT),
            new AttachmentToken(new byte[AttachmentToken.KEY_BYTES]),
            (InstantSource) () -> Samples.NOW,
            new Ids(new SecureRandom()),
            Duration.ofHours(1));
    var routes = Router.builder();
    new AttachHandlers(sessions).addTo(routes);
    server = new TestServer(routes.build());
  }

  @AfterEach
  void close() {
    server.close();
    http.close();
    sessions.close();
    store.close();
  }

  private SessionTicket create(boolean pty) {
    return sessions.create(
        CALLER,
        BOX,
        new CreateSession(
            new CreateSession.Command.Argv(List.of("run")),
            Map.of(),
            Optional.empty(),
            Optional.empty(),
            true,
            pty ? Optional.of(new PtySize(80, 24)) : Optional.empty(),
            Optional.empty(),
            Optional.empty(),
            false,
            false),
        Optional.empty());
  }

  private HttpRequest.Builder request(SessionTicket ticket, String rest) {
    return HttpRequest.newBuilder(URI.create(server.url(ticket.attachPath() + rest)))
        .header("Authorization", "Bearer " + ticket.token());
  }

  private HttpResponse<InputStream> stream(SessionTicket ticket, String rest, String... headers)
      throws Exception {
    var request = request(ticket, rest);
    if (headers.length > 0) {
      request.headers(headers);
    }
    return http.send(request.build(), BodyHandlers.ofInputStream());
  }

  private HttpResponse<String> post(SessionTicket ticket, String rest, byte[] body, String type)
      throws Exception {
    return http.send(
        request(ticket, rest)
            .header("Content-Type", type)
            .POST(HttpRequest.BodyPublishers.ofByteArray(body))
            .build(),
        BodyHandlers.ofString());
  }

  private static List<EventReader.Event> all(HttpResponse<InputStream> response)
      throws IOException {
    var events = new ArrayList<EventReader.Event>();
    var reader = new EventReader(response.body());
    for (var e = reader.next(); e.isPresent(); e = reader.next()) {
      events.add(e.get());
    }
    return events;
  }

  private static byte[] bytes(List<EventReader.Event> events, String name) {
    var out = new ByteArrayOutputStream();
    for (var event : events) {
      if (event.name().equals(name)) {
        out.writeBytes(OutputTextTest.bytes(event.data().getBytes(StandardCharsets.UTF_8)));
      }
    }
    return out.toByteArray();
  }

  private ScriptedGuest.Process process(SessionTicket ticket) {
    await().until(() -> guest.has(ticket.session().id()));
    return guest.process(ticket.session().id());
  }

  private static byte[] everyByte() {
    byte[] all = new byte[256];
    for (int i = 0; i < 256; i++) {
      all[i] = (byte) i;
    }
    return all;
  }

  @Test
  @DisplayName("behaviours 3, 5, 8: exact bytes and exit, with the headers that keep proxies off")
  void a_stream_carries_exact_bytes() throws Exception {
    for (String mode : List.of("", "?encoding=base64")) {
      SessionTicket ticket = create(false);
      var response = stream(ticket, mode);
      assertThat(response.statusCode()).isEqualTo(200);
      assertThat(response.headers().firstValue("Content-Type")).contains("text/event-stream");
      assertThat(response.headers().firstValue("Cache-Control").orElse("")).contains("no-");
      assertThat(response.headers().firstValue("X-Accel-Buffering")).contains("no");
      process(ticket).write(Stream.STDOUT, everyByte());
      process(ticket).write(Stream.STDERR, "größer \"€\" 😀\r\n".getBytes(StandardCharsets.UTF_8));
      process(ticket).exit(3);
      var events = all(response);
      assertThat(events)
          .extracting(EventReader.Event::name)
          .containsExactly("started", "stdout", "stderr", "exit");
      assertThat(bytes(events, "stdout")).isEqualTo(everyByte());
      assertThat(new String(bytes(events, "stderr"), StandardCharsets.UTF_8))
          .isEqualTo("größer \"€\" 😀\r\n");
      assertThat(events.getLast().data()).isEqualTo("{\"code\":3}");
      assertThat(events.getLast().id()).contains("4");
    }
  }

  @Test
  @DisplayName("behaviours 5, 9: divided characters stay whole over a reconnect after any event")
  void text_goes_on_anywhere() throws Exception {
    SessionTicket ticket = create(false);
    byte[] text = "aé€😀b".repeat(3).getBytes(StandardCharsets.UTF_8);
    sessions.attach(ticket.session().id(), ticket.token()).start();
    for (byte b : text) {
      process(ticket).write(Stream.STDOUT, new byte[] {b});
      process(ticket).write(Stream.STDERR, new byte[] {'.'});
    }
    process(ticket).exit(0);
    var whole = all(stream(ticket, ""));
    assertThat(bytes(whole, "stdout")).isEqualTo(text);
    for (int i = 0; i < whole.size(); i++) {
      String last = whole.get(i).id().orElseThrow();
      var later = all(stream(ticket, "", "Last-Event-ID", last));
      assertThat(later).isEqualTo(whole.subList(i + 1, whole.size()));
    }
  }

  @Test
  @DisplayName("behaviour 4: a lost sandbox ends the stream with an error and no exit")
  void a_lost_stream_ends_with_an_error() throws Exception {
    SessionTicket ticket = create(false);
    var response = stream(ticket, "");
    process(ticket).write("x");
    host.states.put(BOX, SandboxState.FAILED);
    var reader = new EventReader(response.body());
    assertThat(reader.next().orElseThrow().name()).isEqualTo("started");
    assertThat(reader.next().orElseThrow().name()).isEqualTo("stdout");
    sessions.sandboxOver(BOX, Problem.of(ErrorCode.SANDBOX_DIED, "The kernel panicked."));
    var error = reader.next().orElseThrow();
    assertThat(error.name()).isEqualTo("error");
    assertThat(error.id()).isEmpty();
    assertThat(reader.next()).isEmpty();
    assertThat(error.data()).contains("sandbox_died").contains("The kernel panicked.");
  }

  @Test
  @DisplayName("behaviours 17, 38, 40: refusals have their own status")
  void refusals_are_answers() throws Exception {
    SessionTicket ticket = create(false);
    guest.commands.remove("run");
    assertThat(stream(ticket, "").statusCode()).isEqualTo(422);
    guest.commands.add("run");
    SessionTicket fine = create(false);
    assertThat(stream(fine, "?nonsense=1").statusCode()).isEqualTo(400);
    assertThat(stream(fine, "?encoding=x").statusCode()).isEqualTo(400);
    assertThat(stream(fine, "", "Last-Event-ID", "x").statusCode()).isEqualTo(400);
    String url = server.url(fine.attachPath());
    var bare = HttpRequest.newBuilder(URI.create(url)).build();
    var answer = http.send(bare, BodyHandlers.ofString());
    assertThat(answer.statusCode()).isEqualTo(401);
    assertThat(answer.headers().firstValue("WWW-Authenticate")).isPresent();
    var query = HttpRequest.newBuilder(URI.create(url + "?token=" + ticket.token())).build();
    assertThat(http.send(query, BodyHandlers.ofString()).statusCode()).isEqualTo(403);
    var altered = HttpRequest.newBuilder(URI.create(url + "?token=" + fine.token() + "A")).build();
    assertThat(http.send(altered, BodyHandlers.ofString()).statusCode()).isEqualTo(401);
    assertThat(guest.has(fine.session().id())).isFalse();
  }

  @Test
  void input_signals_and_sizes_reach_the_process() throws Exception {
    SessionTicket ticket = create(true);
    byte[] input = new byte[150_000];
    input[149_999] = 9;
    var answer = post(ticket, "/stdin?offset=0", input, "application/octet-stream");
    assertThat(answer.body()).isEqualTo("{\"next_offset\":150000}");
    assertThat(post(ticket, "/stdin?offset=0", input, "application/octet-stream").body())
        .isEqualTo("{\"next_offset\":150000}");
    assertThat(post(ticket, "/stdin?offset=200000", input, "application/octet-stream").statusCode())
        .isEqualTo(409);
    assertThat(post(ticket, "/stdin", input, "application/octet-stream").statusCode())
        .isEqualTo(400);
    post(ticket, "/stdin?offset=150000&eof=true", new byte[0], "application/octet-stream");
    assertThat(process(ticket).stdin.toByteArray()).isEqualTo(input);
    assertThat(process(ticket).eof).isTrue();
    byte[] size = "{\"cols\":100,\"rows\":40}".getBytes(StandardCharsets.UTF_8);
    assertThat(post(ticket, "/resize", size, "application/json").statusCode()).isEqualTo(204);
    assertThat(process(ticket).size).isEqualTo(new PtySize(100, 40));
    for (String signal : List.of("{\"signal\":\"INT\"}", "{\"signal\":2,\"scope\":\"tree\"}")) {
      assertThat(
              post(ticket, "/signal", signal.getBytes(StandardCharsets.UTF_8), "application/json")
                  .statusCode())
          .isEqualTo(204);
    }
    assertThat(process(ticket).signals).containsExactly(2, 2);
    assertThat(
            post(
                    ticket,
                    "/signal",
                    "{\"signal\":\"NO\"}".getBytes(StandardCharsets.UTF_8),
                    "application/json")
                .statusCode())
        .isEqualTo(400);
  }

  /// Collects what a web socket gets.
  private static final class Talk implements WebSocket.Listener {
    final ByteArrayOutputStream shown = new ByteArrayOutputStream();
    final List<String> texts = new CopyOnWriteArrayList<>();
    volatile int closed;

    @Override
    public CompletionStage<?> onBinary(WebSocket socket, ByteBuffer data, boolean last) {
      byte[] bytes = new byte[data.remaining()];
      data.get(bytes);
      synchronized (shown) {
        shown.writeBytes(bytes);
      }
      socket.request(1);
      return java.util.concurrent.CompletableFuture.completedStage(null);
    }

    @Override
    public CompletionStage<?> onText(WebSocket socket, CharSequence data, boolean last) {
      texts.add(data.toString());
      socket.request(1);
      return java.util.concurrent.CompletableFuture.completedStage(null);
    }

    @Override
    public CompletionStage<?> onClose(WebSocket socket, int code, String reason) {
      closed = code;
      return java.util.concurrent.CompletableFuture.completedStage(null);
    }

    String text() {
      synchronized (shown) {
        return shown.toString(StandardCharsets.UTF_8);
      }
    }
  }

  private WebSocket talk(SessionTicket ticket, Talk talk) {
    return http.newWebSocketBuilder()
        .header("Authorization", "Bearer " + ticket.token())
        .buildAsync(URI.create(server.url(ticket.attachPath()).replace("http:", "ws:")), talk)
        .join();
  }

  @Test
  @DisplayName("behaviours 9, 15: a terminal over a web socket, with its scroll-back on return")
  void a_terminal_talks() {
    SessionTicket ticket = create(true);
    var first = new Talk();
    WebSocket socket = talk(ticket, first);
    process(ticket).write("$ ");
    await().until(() -> first.text().equals("$ "));
    socket.sendBinary(ByteBuffer.wrap("ls\r".getBytes(StandardCharsets.UTF_8)), true).join();
    await().until(() -> process(ticket).stdin.size() == 3);
    socket.sendText("{\"type\":\"resize\",\"cols\":132,\"rows\":50}", true).join();
    await().until(() -> new PtySize(132, 50).equals(process(ticket).size));
    socket.sendText("garbage", true).join();
    await().until(() -> first.texts.stream().anyMatch(t -> t.contains("invalid_request")));
    socket.abort();
    var second = new Talk();
    WebSocket again = talk(ticket, second);
    await().until(() -> second.text().equals("$ "));
    again.sendBinary(ByteBuffer.wrap(new byte[] {4}), true).join();
    await().until(() -> process(ticket).stdin.size() == 4);
    process(ticket).exit(5);
    await().until(() -> second.closed == 1000);
    assertThat(second.texts).contains("{\"type\":\"exit\",\"code\":5}");
  }
}
