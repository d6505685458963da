package dev.space.guest;

import com.google.protobuf.ByteString;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.FileEntry;
import dev.space.core.guest.GuestLink;
import dev.space.core.guest.GuestStats;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessInfo;
import dev.space.core.guest.ProcessSpec;
import dev.space.core.guest.WriteFileSpec;
import dev.space.guest.proto.AgentGrpc;
import dev.space.guest.proto.Chunk;
import dev.space.guest.proto.HelloReply;
import dev.space.guest.proto.HelloRequest;
import dev.space.guest.proto.ListDirRequest;
import dev.space.guest.proto.ListProcessesRequest;
import dev.space.guest.proto.MakeDirRequest;
import dev.space.guest.proto.MarkWatchRequest;
import dev.space.guest.proto.MoveRequest;
import dev.space.guest.proto.OutputRequest;
import dev.space.guest.proto.ReadFileReply;
import dev.space.guest.proto.ReadFileRequest;
import dev.space.guest.proto.ReadTreeRequest;
import dev.space.guest.proto.ReleaseRequest;
import dev.space.guest.proto.RemoveRequest;
import dev.space.guest.proto.ResizeRequest;
import dev.space.guest.proto.ShutdownRequest;
import dev.space.guest.proto.SignalRequest;
import dev.space.guest.proto.StartReply;
import dev.space.guest.proto.StatRequest;
import dev.space.guest.proto.StatsRequest;
import dev.space.guest.proto.SyncRequest;
import dev.space.guest.proto.WatchRequest;
import dev.space.guest.proto.WriteFileRequest;
import dev.space.guest.proto.WriteStdinRequest;
import dev.space.guest.proto.WriteTreeHeader;
import dev.space.guest.proto.WriteTreeReply;
import dev.space.guest.proto.WriteTreeRequest;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// The guest over one gRPC channel.
final class GrpcGuestLink implements GuestLink {

  /// For calls that only look something up or hand something over.
  private static final Duration QUICK = Duration.ofSeconds(30);

  /// For calls that may move through a whole tree or flush a whole disk, and for input that a
  /// process may be slow to take.
  private static final Duration LONG = Duration.ofMinutes(10);

  private static final int CHUNK_BYTES = 64 * 1024;

  private final LinkChannel channel;
  private final Calls calls;
  private final Adoptions adoptions;
  private volatile long generation;

  GrpcGuestLink(LinkChannel channel, Calls calls, Adoptions adoptions) {
    this.channel = channel;
    this.calls = calls;
    this.adoptions = adoptions;
  }

  /// Asks who answers, without waiting for it.
  Future<HelloReply> hello(Duration deadline) {
    return calls.send(AgentGrpc.getHelloMethod(), HelloRequest.getDefaultInstance(), deadline);
  }

  /// Waits for the answer to a greeting.
  HelloReply greeted(Future<HelloReply> greeting) {
    return calls.await(greeting);
  }

  @Override
  public void adopt(long next, Adoption adoption, Duration deadline) {
    try {
      calls.unary(AgentGrpc.getAdoptMethod(), adoptions.request(next, adoption), deadline);
    } catch (SpaceException e) {
      if (e.code() == ErrorCode.DEADLINE_EXCEEDED) {
        throw Problem.of(ErrorCode.GUEST_UNREACHABLE, "The guest did not answer its adoption.")
            .because("no answer within " + deadline.toMillis() + " ms")
            .toException(e);
      }
      throw e;
    }
    generation = next;
  }

  @Override
  public long generation() {
    return generation;
  }

  @Override
  public CompletableFuture<Void> closed() {
    return channel.closed().copy();
  }

  @Override
  public void close() {
    channel.close();
  }

  // -- processes

  @Override
  public ProcessInfo start(ProcessSpec spec) {
    StartReply reply = calls.unary(AgentGrpc.getStartMethod(), Messages.start(spec), QUICK);
    return Messages.process(reply.getProcess(), reply.getExisted());
  }

  @Override
  public void run(ProcessSpec spec, long afterSeq, OutputSink sink) {
    OutputRequest request =
        OutputRequest.newBuilder()
            .setId(spec.id())
            .setAfterSeq(afterSeq)
            .setStart(Messages.start(spec))
            .build();
    var begun = new AtomicBoolean();
    try {
      follow(
          request,
          event -> {
            begun.set(true);
            sink.accept(event);
          });
    } catch (SpaceException e) {
      boolean unknown = e.code() == ErrorCode.NOT_FOUND || e.code() == ErrorCode.SESSION_NOT_FOUND;
      if (begun.get() || !unknown) {
        throw e;
      }
      // A guest that was saved with an older agent.
      start(spec);
      output(spec.id(), afterSeq, sink);
    }
  }

  @Override
  public void output(String processId, long afterSeq, OutputSink sink) {
    follow(OutputRequest.newBuilder().setId(processId).setAfterSeq(afterSeq).build(), sink);
  }

  private void follow(OutputRequest request, OutputSink sink) {
    try (var call = calls.open(AgentGrpc.getOutputMethod(), request)) {
      long last = request.getAfterSeq();
      for (var message = call.next(); message != null; message = call.next()) {
        OutputEvent event = Messages.output(message);
        last = following(last, event);
        sink.accept(event);
        if (event instanceof OutputEvent.Exited) {
          return;
        }
      }
      throw GuestErrors.broken("the output ended without an exit").toException();
    }
  }

  /// Checks that an event follows the last one without a hole.
  private static long following(long last, OutputEvent event) {
    long first = event instanceof OutputEvent.Gap gap ? gap.firstSeq() : event.seq();
    if (first != last + 1 || event.seq() < first) {
      throw GuestErrors.broken("output event " + first + " came after " + last).toException();
    }
    return event.seq();
  }

  @Override
  public long writeStdin(String processId, long offset, byte[] data, boolean eof) {
    return calls
        .unary(
            AgentGrpc.getWriteStdinMethod(),
            WriteStdinRequest.newBuilder()
                .setId(processId)
                .setOffset(offset)
                .setData(ByteString.copyFrom(data))
                .setEof(eof)
                .build(),
            LONG)
        .getNextOffset();
  }

  @Override
  public void signal(String processId, int signal, SignalScope scope) {
    calls.unary(
        AgentGrpc.getSignalMethod(),
        SignalRequest.newBuilder()
            .setId(processId)
            .setSignal(signal)
            .setScope(Messages.scope(scope))
            .build(),
        QUICK);
  }

  @Override
  public void resize(String processId, ProcessSpec.PtySize size) {
    calls.unary(
        AgentGrpc.getResizeMethod(),
        ResizeRequest.newBuilder().setId(processId).setSize(Messages.pty(size)).build(),
        QUICK);
  }

  @Override
  public List<ProcessInfo> processes() {
    return calls
        .unary(AgentGrpc.getListProcessesMethod(), ListProcessesRequest.getDefaultInstance(), QUICK)
        .getProcessesList()
        .stream()
        .map(p -> Messages.process(p, true))
        .toList();
  }

  @Override
  public void release(String processId) {
    try {
      calls.unary(
          AgentGrpc.getReleaseMethod(),
          ReleaseRequest.newBuilder().setId(processId).build(),
          QUICK);
    } catch (SpaceException e) {
      if (e.code() != ErrorCode.NOT_FOUND && e.code() != ErrorCode.SESSION_NOT_FOUND) {
        throw e;
      }
    }
  }

  // -- files

  @Override
  public FileEntry stat(String path, Optional<String> user) {
    return Messages.entry(
        calls.unary(
            AgentGrpc.getStatMethod(),
            StatRequest.newBuilder().setPath(path).setUser(user.orElse("")).build(),
            QUICK));
  }

  @Override
  public void listDir(
      String path, Optional<String> user, int depth, boolean xattrs, EntrySink sink) {
    ListDirRequest request =
        ListDirRequest.newBuilder()
            .setPath(path)
            .setUser(user.orElse(""))
            .setDepth(depth)
            .setXattrs(xattrs)
            .build();
    try (var call = calls.open(AgentGrpc.getListDirMethod(), request)) {
      for (var entry = call.next(); entry != null; entry = call.next()) {
        sink.accept(Messages.entry(entry));
      }
    }
  }

  @Override
  public FileEntry makeDir(
      String path, Optional<String> user, Optional<Integer> mode, boolean parents) {
    return Messages.entry(
        calls.unary(
            AgentGrpc.getMakeDirMethod(),
            MakeDirRequest.newBuilder()
                .setPath(path)
                .setUser(user.orElse(""))
                .setMode(mode.orElse(0))
                .setParents(parents)
                .build(),
            QUICK));
  }

  @Override
  public FileEntry move(
      String source,
      String destination,
      Optional<String> user,
      boolean parents,
      boolean overwrite) {
    return Messages.entry(
        calls.unary(
            AgentGrpc.getMoveMethod(),
            MoveRequest.newBuilder()
                .setSource(source)
                .setDestination(destination)
                .setUser(user.orElse(""))
                .setParents(parents)
                .setNoOverwrite(!overwrite)
                .build(),
            LONG));
  }

  @Override
  public long remove(String path, Optional<String> user, boolean recursive) {
    return calls
        .unary(
            AgentGrpc.getRemoveMethod(),
            RemoveRequest.newBuilder()
                .setPath(path)
                .setUser(user.orElse(""))
                .setRecursive(recursive)
                .build(),
            LONG)
        .getRemoved();
  }

  @Override
  public FileReading readFile(
      String path, Optional<String> user, long offset, Optional<Long> length) {
    ReadFileRequest request =
        ReadFileRequest.newBuilder()
            .setPath(path)
            .setUser(user.orElse(""))
            .setOffset(offset)
            .setLength(length.orElse(0L))
            .build();
    Exchange<ReadFileRequest, ReadFileReply> call =
        calls.open(AgentGrpc.getReadFileMethod(), request);
    @Nullable ReadFileReply first = call.next();
    if (first == null || !first.hasEntry()) {
      call.close();
      throw GuestErrors.broken("a file's bytes came before its entry").toException();
    }
    return new Reading(
        Messages.entry(first.getEntry()), new MessageInput<>(call, ReadFileReply::getData));
  }

  private record Reading(FileEntry entry, MessageInput<ReadFileReply> body) implements FileReading {
    @Override
    public void close() {
      body.close();
    }
  }

  @Override
  public FileEntry writeFile(WriteFileSpec spec, InputStream body) throws IOException {
    try (var call = calls.open(AgentGrpc.getWriteFileMethod())) {
      call.send(WriteFileRequest.newBuilder().setHeader(Messages.header(spec)).build());
      return Messages.entry(
          send(call, body, data -> WriteFileRequest.newBuilder().setData(data).build()));
    }
  }

  @Override
  public InputStream readTree(String path, Optional<String> user) {
    ReadTreeRequest request =
        ReadTreeRequest.newBuilder().setPath(path).setUser(user.orElse("")).build();
    return new MessageInput<>(calls.open(AgentGrpc.getReadTreeMethod(), request), Chunk::getData);
  }

  @Override
  public TreeWritten writeTree(
      String path, Optional<String> user, boolean keepOwners, InputStream tar) throws IOException {
    try (var call = calls.open(AgentGrpc.getWriteTreeMethod())) {
      WriteTreeHeader header =
          WriteTreeHeader.newBuilder()
              .setPath(path)
              .setUser(user.orElse(""))
              .setKeepOwners(keepOwners)
              .build();
      call.send(WriteTreeRequest.newBuilder().setHeader(header).build());
      WriteTreeReply reply =
          send(call, tar, data -> WriteTreeRequest.newBuilder().setData(data).build());
      return new TreeWritten(reply.getFiles(), reply.getBytes());
    }
  }

  /// Streams a body into an open call and waits for its one answer. A body that fails cancels the
  /// call, so that the guest takes back what it wrote.
  private static <Q, P> P send(
      Exchange<Q, P> call, InputStream body, Function<ByteString, Q> message) throws IOException {
    byte[] buffer = new byte[CHUNK_BYTES];
    boolean taken = true;
    for (int n = body.read(buffer); taken && n >= 0; n = body.read(buffer)) {
      taken = n == 0 || call.send(message.apply(ByteString.copyFrom(buffer, 0, n)));
    }
    if (taken) {
      call.halfClose();
    }
    @Nullable P reply = call.next();
    if (reply == null) {
      throw GuestErrors.broken("the call ended without an answer").toException();
    }
    return reply;
  }

  @Override
  public void watch(WatchSpec spec, WatchSink sink) {
    WatchRequest request =
        WatchRequest.newBuilder()
            .setPath(spec.path())
            .setUser(spec.user().orElse(""))
            .setRecursive(spec.recursive())
            .setEntries(spec.entries())
            .setAllowNetworkMounts(spec.allowNetworkMounts())
            .setId(spec.id().orElse(""))
            .build();
    try (var call = calls.open(AgentGrpc.getWatchMethod(), request)) {
      for (var event = call.next(); event != null; event = call.next()) {
        sink.accept(Messages.watch(event));
      }
    }
  }

  @Override
  public long markWatch(String id) {
    return calls
        .unary(
            AgentGrpc.getMarkWatchMethod(), MarkWatchRequest.newBuilder().setId(id).build(), QUICK)
        .getMark();
  }

  @Override
  public Tunnel connect(int port) {
    return new GrpcTunnel(calls.open(AgentGrpc.getTunnelMethod()), port);
  }

  // -- the guest itself

  @Override
  public GuestStats stats() {
    return Messages.stats(
        calls.unary(AgentGrpc.getStatsMethod(), StatsRequest.getDefaultInstance(), QUICK));
  }

  @Override
  public void sync() {
    calls.unary(AgentGrpc.getSyncMethod(), SyncRequest.getDefaultInstance(), LONG);
  }

  @Override
  public void shutdown(Duration grace) {
    calls.unary(
        AgentGrpc.getShutdownMethod(),
        ShutdownRequest.newBuilder()
            .setGraceMillis((int) Math.min(Integer.MAX_VALUE, grace.toMillis()))
            .build(),
        grace.plus(QUICK));
  }
}
