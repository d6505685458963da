package dev.space.guest;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.type;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.core.guest.GuestLink;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessExit;
import dev.space.core.guest.ProcessSpec;
import java.io.ByteArrayOutputStream;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The guest link against the real agent, run as an ordinary process.
class GuestLinkTest {

  private static final Duration SOON = Duration.ofSeconds(20);

  @TempDir static Path dir;
  private static AgentProcess agent;
  private static long generation;

  private final GrpcGuestConnector connector =
      new GrpcGuestConnector(InstantSource.system(), new SecureRandom());
  private GuestLink link;

  @BeforeAll
  static void startAgent() {
    agent = new AgentProcess(dir);
  }

  @AfterAll
  static void stopAgent() {
    agent.close();
  }

  @BeforeEach
  void connect() {
    link = connector.connect(agent, ++generation, adoption(), SOON);
  }

  @AfterEach
  void close() {
    link.close();
  }

  private static Guest.Adoption adoption() {
    return new Guest.Adoption(
        false, "sandbox", "host", Map.of("FROM", "adoption"), Optional.empty(), Optional.empty());
  }

  private record Ran(byte[] stdout, ProcessExit exit, List<OutputEvent> events) {}

  private Ran run(String id, String... argv) {
    link.start(ProcessSpec.of(id, List.of(argv)));
    return follow(id, 0);
  }

  private Ran follow(String id, long after) {
    var bytes = new ByteArrayOutputStream();
    List<OutputEvent> events = new ArrayList<>();
    link.output(
        id,
        after,
        event -> {
          events.add(event);
          if (event instanceof OutputEvent.Bytes b && b.stream() == OutputEvent.Stream.STDOUT) {
            bytes.writeBytes(b.data());
          }
        });
    var exit = (OutputEvent.Exited) events.getLast();
    return new Ran(bytes.toByteArray(), exit.exit(), events);
  }

  private static void assertCode(ErrorCode code, ThrowingCallable call) {
    assertThatThrownBy(call)
        .asInstanceOf(type(SpaceException.class))
        .extracting(SpaceException::code)
        .isEqualTo(code);
  }

  @Test
  void outputAndExitArriveInOrder() {
    var ran = run("order", "sh", "-c", "echo $FROM; exit 3");
    assertThat(ran.stdout()).asString().isEqualTo("adoption\n");
    assertThat(ran.exit()).isEqualTo(new ProcessExit(3, 0, false, false));
    assertThat(ran.events().getFirst()).isInstanceOf(OutputEvent.Started.class);
    assertThat(follow("order", 1).events()).hasSize(ran.events().size() - 1);
  }

  @Test
  void aRunStartsOnceAndFollows() {
    for (int i = 0; i < 2; i++) {
      List<OutputEvent> events = new ArrayList<>();
      link.run(
          ProcessSpec.of("run", List.of("sh", "-c", "mkdir " + dir.resolve("once") + " && exit 4")),
          0,
          events::add);
      assertThat(events.getFirst()).isInstanceOf(OutputEvent.Started.class);
      var exit = (OutputEvent.Exited) events.getLast();
      assertThat(exit.exit().code()).isEqualTo(4);
    }
    assertCode(
        ErrorCode.COMMAND_NOT_FOUND,
        () -> link.run(ProcessSpec.of("none", List.of("no-such-command")), 0, event -> {}));
    assertCode(ErrorCode.ILLEGAL_STATE, () -> link.signal("run", 15, Guest.SignalScope.PROCESS));
  }

  @Test
  void twentyMegabytesArriveUnchanged() {
    var ran = run("big", "sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' x");
    assertThat(ran.stdout()).hasSize(20_000_000).containsOnly('x');
  }

  @Test
  void interruptingAReaderCancelsItsCall() throws Exception {
    link.start(ProcessSpec.of("silent", List.of("sleep", "60")));
    var started = new CountDownLatch(1);
    var failure = new CompletableFuture<ErrorCode>();
    Thread reader =
        Thread.ofVirtual()
            .start(
                () -> {
                  try {
                    link.output("silent", 0, _ -> started.countDown());
                  } catch (SpaceException e) {
                    failure.complete(e.code());
                  }
                });
    assertThat(started.await(20, TimeUnit.SECONDS)).isTrue();
    reader.interrupt();
    assertThat(failure.get(20, TimeUnit.SECONDS)).isEqualTo(ErrorCode.CANCELLED);
    link.signal("silent", 9, Guest.SignalScope.TREE);
    assertThat(follow("silent", 0).exit().signal()).isEqualTo(9);
  }

  @Test
  void stdinIsTakenAtItsPositionOnce() {
    link.start(
        new ProcessSpec(
            "cat",
            List.of("cat"),
            Map.of(),
            Optional.empty(),
            Optional.empty(),
            true,
            Optional.empty(),
            Optional.empty(),
            "",
            true));
    assertThat(link.writeStdin("cat", 0, "ab".getBytes(StandardCharsets.UTF_8), false))
        .isEqualTo(2);
    assertThat(link.writeStdin("cat", 0, "abc".getBytes(StandardCharsets.UTF_8), false))
        .isEqualTo(3);
    assertCode(
        ErrorCode.OFFSET_MISMATCH,
        () -> link.writeStdin("cat", 9, "x".getBytes(StandardCharsets.UTF_8), false));
    link.writeStdin("cat", 3, new byte[0], true);
    assertThat(follow("cat", 0).stdout()).asString().isEqualTo("abc");
  }

  @Test
  void refusalsHaveTheirOwnCodes() {
    assertCode(ErrorCode.COMMAND_NOT_FOUND, () -> run("e1", "no-such-command"));
    assertCode(ErrorCode.SESSION_NOT_FOUND, () -> follow("unknown", 0));
    var noUser = ProcessSpec.of("e2", List.of("true"));
    assertCode(
        ErrorCode.USER_NOT_FOUND,
        () ->
            link.start(
                new ProcessSpec(
                    "e2",
                    noUser.argv(),
                    Map.of(),
                    Optional.empty(),
                    Optional.of("nobody-here"),
                    false,
                    Optional.empty(),
                    Optional.empty(),
                    "",
                    true)));
    assertCode(
        ErrorCode.WORKDIR_NOT_FOUND,
        () ->
            link.start(
                new ProcessSpec(
                    "e3",
                    List.of("true"),
                    Map.of(),
                    Optional.of("/no/such/dir"),
                    Optional.empty(),
                    false,
                    Optional.empty(),
                    Optional.empty(),
                    "",
                    true)));
    link.release("never-was");
  }

  @Test
  void closingTheLinkFailsItsCallsAndLeavesProcesses() throws Exception {
    link.start(ProcessSpec.of("stays", List.of("sleep", "60")));
    var failure = new CompletableFuture<ErrorCode>();
    var started = new CountDownLatch(1);
    Thread.ofVirtual()
        .start(
            () -> {
              try {
                link.output("stays", 0, _ -> started.countDown());
              } catch (SpaceException e) {
                failure.complete(e.code());
              }
            });
    assertThat(started.await(20, TimeUnit.SECONDS)).isTrue();
    link.close();
    link.closed().get(20, TimeUnit.SECONDS);
    assertThat(failure.get(20, TimeUnit.SECONDS)).isEqualTo(ErrorCode.GUEST_UNREACHABLE);
    assertCode(ErrorCode.GUEST_UNREACHABLE, () -> link.processes());
    connect();
    assertThat(link.processes()).anyMatch(p -> p.id().equals("stays") && p.exit().isEmpty());
    link.signal("stays", 9, Guest.SignalScope.TREE);
  }

  @Test
  void adoptionCanBeRepeatedOverAnOpenLinkWithALargerGeneration() {
    link.adopt(++generation, adoption(), SOON);
    assertThat(link.generation()).isEqualTo(generation);
    assertCode(ErrorCode.CONFLICT, () -> link.adopt(generation, adoption(), SOON));
  }

  @Test
  void deadAgentIsASandboxThatDied(@TempDir Path other) {
    try (var victim = new AgentProcess(other);
        var to = connector.connect(victim, 1, adoption(), SOON)) {
      victim.die();
      assertCode(ErrorCode.SANDBOX_DIED, to::processes);
    }
  }

  @Test
  void anAgentThatTheHostEndsBelongsToASandboxThatWasPutAway(@TempDir Path other) {
    try (var victim = new AgentProcess(other);
        var to = connector.connect(victim, 1, adoption(), SOON)) {
      victim.kill();
      assertCode(ErrorCode.GUEST_UNREACHABLE, to::processes);
    }
  }

  @Test
  void aGuestThatNeverAnswersIsUnreachableAtTheDeadline(@TempDir Path other) throws Exception {
    Path socket = other.resolve("s");
    try (var deaf = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      deaf.bind(UnixDomainSocketAddress.of(socket));
      var vm = new SocketVm(socket, "last words");
      long start = System.nanoTime();
      assertThatThrownBy(() -> connector.greet(vm, Duration.ofMillis(300)))
          .asInstanceOf(type(SpaceException.class))
          .satisfies(
              e -> {
                assertThat(e.code()).isEqualTo(ErrorCode.GUEST_UNREACHABLE);
                assertThat(e.problem().cause().orElse("")).contains("last words");
              });
      assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(5));
    }
  }
}
