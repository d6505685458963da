package dev.space.dataplane;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.space.core.Ids;
import dev.space.core.access.Caller;
import dev.space.core.guest.OutputEvent.Stream;
import dev.space.core.session.AttachmentToken;
import dev.space.core.session.CreateSession;
import dev.space.core.session.FakeHost;
import dev.space.core.session.ScriptedGuest;
import dev.space.core.session.SessionService;
import dev.space.core.session.SessionTicket;
import dev.space.http.Router;
import dev.space.http.TestServer;
import dev.space.node.log.DiskOutputLogs;
import dev.space.node.log.LogBounds;
import dev.space.store.SqliteStore;
import dev.space.wire.EventReader;
import java.io.InputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("slow")
class StreamLoadTest {

  private static final int STREAMS = 500;
  private static final int EVENTS = 10;
  private static final long HEAP_GROWTH_MAX = 64L * 1024 * 1024;
  private static final String BOX = "i0000000000000000001";

  @TempDir private Path root;

  private static long heap() {
    System.gc();
    return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
  }

  @Test
  @DisplayName("behaviour 7: 500 streams with an event each second: none missed, none late")
  void five_hundred_streams_keep_up() throws Exception {
    var host = new FakeHost();
    var guest = new ScriptedGuest();
    host.add(BOX, guest);
    try (var store = SqliteStore.open(root.resolve("data"));
        var sessions =
            new SessionService(
                host,
                store,
                new DiskOutputLogs(root.resolve("sessions"), LogBounds.DEFAULT),
                new AttachmentToken(new byte[AttachmentToken.KEY_BYTES]),
                InstantSource.system(),
                new Ids(new SecureRandom()),
                Duration.ofHours(1));
        var readers = Executors.newVirtualThreadPerTaskExecutor();
        var ticker = Executors.newSingleThreadScheduledExecutor()) {
      var routes = Router.builder();
      new AttachHandlers(sessions).addTo(routes);
      try (var server = new TestServer(routes.build())) {
        var late = new AtomicLong();
        var ended = new AtomicInteger();
        var seen = new AtomicInteger();
        List<SessionTicket> tickets = new ArrayList<>();
        for (int i = 0; i < STREAMS; i++) {
          SessionTicket ticket = create(sessions);
          tickets.add(ticket);
          readers.submit(
              () -> {
                read(server, ticket, seen, late);
                ended.incrementAndGet();
                return ticket;
              });
        }
        await().atMost(Duration.ofSeconds(60)).until(() -> guest.starts == STREAMS);
        long before = heap();
        var ticks = new AtomicInteger();
        var _ =
            ticker.scheduleAtFixedRate(
                () -> {
                  if (ticks.incrementAndGet() <= EVENTS) {
                    tickets.forEach(
                        t ->
                            guest
                                .process(t.session().id())
                                .write(
                                    Stream.STDOUT,
                                    Long.toString(System.nanoTime())
                                        .getBytes(StandardCharsets.US_ASCII)));
                  }
                },
                0,
                1,
                TimeUnit.SECONDS);
        await()
            .atMost(Duration.ofSeconds(60))
            .until(() -> seen.get() == STREAMS * EVENTS && ticks.get() > EVENTS);
        long after = heap();
        tickets.forEach(t -> guest.process(t.session().id()).exit(0));
        await().atMost(Duration.ofSeconds(30)).until(() -> ended.get() == STREAMS);
        assertThat(Duration.ofNanos(late.get())).isLessThan(Duration.ofSeconds(1));
        assertThat(after - before).isLessThan(HEAP_GROWTH_MAX);
      }
    }
  }

  private static SessionTicket create(SessionService sessions) {
    return sessions.create(
        new Caller("p", "k1", "r1"),
        BOX,
        new CreateSession(
            new CreateSession.Command.Argv(List.of("run")),
            Map.of(),
            Optional.empty(),
            Optional.empty(),
            false,
            Optional.empty(),
            Optional.empty(),
            Optional.empty(),
            false,
            false),
        Optional.empty());
  }

  private static void read(
      TestServer server, SessionTicket ticket, AtomicInteger seen, AtomicLong late)
      throws Exception {
    try (Socket socket = new Socket("127.0.0.1", server.address().getPort())) {
      // HTTP/1.0: the body is bare, without chunks.
      socket
          .getOutputStream()
          .write(
              ("GET "
                      + ticket.attachPath()
                      + " HTTP/1.0\r\nAuthorization: Bearer "
                      + ticket.token()
                      + "\r\n\r\n")
                  .getBytes(StandardCharsets.US_ASCII));
      InputStream in = new java.io.BufferedInputStream(socket.getInputStream());
      ResponseHead.read(in);
      var events = new EventReader(in);
      for (var e = events.next(); e.isPresent(); e = events.next()) {
        if (e.get().name().equals("stdout")) {
          byte[] data = OutputTextTest.bytes(e.get().data().getBytes(StandardCharsets.UTF_8));
          long sent = Long.parseLong(new String(data, StandardCharsets.US_ASCII));
          late.accumulateAndGet(System.nanoTime() - sent, Math::max);
          seen.incrementAndGet();
        }
      }
    }
  }
}
