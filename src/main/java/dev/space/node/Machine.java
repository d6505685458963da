package dev.space.node;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.core.guest.GuestLink;
import dev.space.core.vm.Vm;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// A VM directory and what of it is alive in this process. Whoever changes it holds its lane.
final class Machine {

  private static final String OWN = "boot-";

  private final String id;
  private final Path directory;
  private final ReentrantLock lane = new ReentrantLock(true);
  private final CompletableFuture<Void> cancelled = new CompletableFuture<>();
  private final AtomicBoolean claimed = new AtomicBoolean();
  private final Object news = new Object();
  private volatile @Nullable VmEntry entry;
  private volatile @Nullable Vm vm;
  private volatile @Nullable GuestLink link;
  private volatile @Nullable Joining joining;
  private volatile Guest.@Nullable Adoption adoption;

  Machine(String id, Path directory) {
    this.id = id;
    this.directory = directory;
  }

  String id() {
    return id;
  }

  Path directory() {
    return directory;
  }

  Path disk() {
    return directory.resolve("disk.img");
  }

  Path saved() {
    return directory.resolve("saved");
  }

  /// Where the memory of a guest that was booted from this machine's disk is kept, by a name of its
  /// own.
  Path own(String name) {
    return directory.resolve(OWN + name);
  }

  /// Removes memories of former boots.
  ///
  /// @param kept what the machine builds upon
  void sweepOwn(VmEntry.Origin kept) {
    for (Path path : Folders.children(directory)) {
      String name = path.getFileName().toString();
      boolean used = kept.kind() == VmEntry.Origin.Kind.OWN && kept.name().equals(ownName(path));
      if (name.startsWith(OWN) && !used) {
        Folders.remove(path);
      }
    }
  }

  /// The name of an own folder as an origin has it.
  String ownName(Path folder) {
    return id + "/" + folder.getFileName();
  }

  ReentrantLock lane() {
    return lane;
  }

  // -- what is known of it

  Optional<VmEntry> entry() {
    return Optional.ofNullable(entry);
  }

  void entry(VmEntry next) {
    entry = next;
    tell();
  }

  /// @throws SpaceException ILLEGAL_STATE as long as there is none
  VmEntry requireEntry() {
    VmEntry now = entry;
    if (now == null) {
      throw Problem.of(ErrorCode.ILLEGAL_STATE, "Sandbox " + id + " is still being made")
          .toException();
    }
    return now;
  }

  /// @throws SpaceException ILLEGAL_STATE when it is in no such state
  VmEntry require(String verb, VmEntry.State... states) {
    VmEntry now = requireEntry();
    for (VmEntry.State state : states) {
      if (now.state() == state) {
        return now;
      }
    }
    throw Problem.of(ErrorCode.ILLEGAL_STATE, "The sandbox can't be " + verb + " now")
        .because("it is " + now.state().name().toLowerCase(java.util.Locale.ROOT))
        .toException();
  }

  Optional<Vm> vm() {
    return Optional.ofNullable(vm);
  }

  Vm requireVm() {
    Vm now = vm;
    if (now == null) {
      throw Problem.of(ErrorCode.SANDBOX_DIED, "The VM of " + id + " is gone").toException();
    }
    return now;
  }

  /// Takes a VM; without one, or with another than before, its link is no longer watched.
  void vm(@Nullable Vm next) {
    vm = next;
  }

  Optional<GuestLink> link() {
    return Optional.ofNullable(link);
  }

  void link(@Nullable GuestLink next) {
    link = next;
    tell();
  }

  /// A link whose guest is being adopted anew: nobody gets it before the guest has answered.
  record Joining(GuestLink link, long generation) {}

  /// The link it has or is about to have.
  Optional<GuestLink> linkOrJoining() {
    Joining now = joining;
    return now == null ? link() : Optional.of(now.link());
  }

  /// Takes the link from its users until its guest has been adopted with this generation.
  Joining join(GuestLink joined, long generation) {
    Joining now = new Joining(joined, generation);
    synchronized (news) {
      joining = now;
      link = null;
    }
    return now;
  }

  boolean isJoining(Joining which) {
    return which.equals(joining);
  }

  /// Gives the link to its users, unless the machine has moved on meanwhile.
  ///
  /// @return whether they have it
  boolean joined(Joining which) {
    synchronized (news) {
      if (!which.equals(joining)) {
        return false;
      }
      link = which.link();
      joining = null;
      news.notifyAll();
      return true;
    }
  }

  Optional<Guest.Adoption> adoption() {
    return Optional.ofNullable(adoption);
  }

  void adoption(Guest.Adoption next) {
    adoption = next;
  }

  /// Closes the link without anybody taking that for a loss.
  void dropLink() {
    Optional<GuestLink> old;
    synchronized (news) {
      old = linkOrJoining();
      link = null;
      joining = null;
    }
    old.ifPresent(GuestLink::close);
  }

  /// Leaves the VM to the next daemon: nothing of this one keeps it from being adopted.
  void letGo() {
    dropLink();
    vm().ifPresent(Vm::forget);
  }

  /// Ends the VM without anybody taking that for a death.
  void dropVm() {
    Vm old = vm;
    vm = null;
    dropLink();
    if (old != null) {
      old.kill();
    }
    tell();
  }

  /// The link of a running guest; waits while a lost one is being replaced.
  GuestLink awaitLink(Duration deadline) {
    long end = System.nanoTime() + deadline.toNanos();
    synchronized (news) {
      while (true) {
        require("used", VmEntry.State.RUNNING);
        GuestLink now = link;
        if (now != null && !now.closed().isDone()) {
          return now;
        }
        long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
        if (left <= 0) {
          throw Problem.of(ErrorCode.GUEST_UNREACHABLE, "The guest of " + id + " can't be reached")
              .because("its link is lost and has not come back yet")
              .remedy("Try again.")
              .toException();
        }
        try {
          news.wait(left);
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          throw Problem.of(ErrorCode.CANCELLED, "Waiting for the guest was cancelled")
              .toException(e);
        }
      }
    }
  }

  private void tell() {
    synchronized (news) {
      news.notifyAll();
    }
  }

  // -- who has it

  /// True for the first caller alone.
  boolean claim() {
    return claimed.compareAndSet(false, true);
  }

  /// Makes whatever is under way fail at its next step; the VM goes at once.
  void cancel() {
    cancelled.complete(null);
    Vm now = vm;
    if (now != null) {
      now.kill();
    }
  }

  CompletableFuture<Void> cancelled() {
    return cancelled;
  }

  /// @throws SpaceException CANCELLED when it is being deleted
  void check() {
    if (cancelled.isDone()) {
      throw deleted();
    }
  }

  SpaceException deleted() {
    return Problem.of(ErrorCode.CANCELLED, "The sandbox was deleted meanwhile").toException();
  }
}
