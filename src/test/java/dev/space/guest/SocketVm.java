package dev.space.guest;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.template.Resources;
import dev.space.core.vm.Vm;
import dev.space.core.vm.VmExit;
import dev.space.core.vm.VmIdentity;
import dev.space.core.vm.VmSpec;
import dev.space.core.vm.VmStats;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;

/// A unix socket in the place of a VM.
public class SocketVm implements Vm {

  private final Path socket;
  private final String console;
  private final CompletableFuture<VmExit> exit = new CompletableFuture<>();

  public SocketVm(Path socket, String console) {
    this.socket = socket;
    this.console = console;
  }

  @Override
  public SocketChannel dial() {
    try {
      return SocketChannel.open(UnixDomainSocketAddress.of(socket));
    } catch (IOException e) {
      throw Problem.of(ErrorCode.VMM_FAILED, "nobody listens").toException(e);
    }
  }

  @Override
  public VmSpec spec() {
    return new VmSpec("agent", socket, Resources.DEFAULT, socket, socket);
  }

  @Override
  public VmIdentity identity() {
    return new VmIdentity(1, 1);
  }

  @Override
  public void pause() {
    throw new UnsupportedOperationException();
  }

  @Override
  public void resume() {
    throw new UnsupportedOperationException();
  }

  @Override
  public void save(Path state, MemoryTarget memory) {
    throw new UnsupportedOperationException();
  }

  @Override
  public VmStats stats() {
    return new VmStats(0, 0, 0);
  }

  @Override
  public void kill() {
    exit.complete(new VmExit(VmExit.Kind.KILLED, "the host ended it"));
  }

  @Override
  public CompletableFuture<VmExit> exit() {
    return exit;
  }

  @Override
  public String consoleTail() {
    return console;
  }
}
