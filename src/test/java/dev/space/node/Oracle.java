package dev.space.node;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.core.node.LaunchSpec;
import dev.space.core.node.NodeRuntime.Progress;
import dev.space.core.node.NodeRuntime.Recovered;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;

/// What must be true of a node, whatever happened. It plays the store: it knows which sandboxes
/// there are and which call was under way when the daemon died.
final class Oracle {

  enum State {
    RUNNING,
    PAUSED,
    SUSPENDED,
    ABSENT
  }

  /// @param may the states it may be in; one, but for a call that was under way
  /// @param content what its file holds
  record Box(LaunchSpec spec, Set<State> may, String content) {}

  /// Content of a sandbox whose write was under way when the daemon died.
  private static final String UNKNOWN = "?";

  private final Bed bed;
  final Map<String, Box> boxes = new ConcurrentSkipListMap<>();
  final Set<String> snapshots = new ConcurrentSkipListSet<>();
  private final AtomicInteger contents = new AtomicInteger();

  Oracle(Bed bed) {
    this.bed = bed;
  }

  private Box box(String id) {
    return java.util.Objects.requireNonNull(boxes.get(id), id);
  }

  State state(String id) {
    return box(id).may().iterator().next();
  }

  private void set(String id, State first, State... rest) {
    Box box = box(id);
    boxes.put(id, new Box(box.spec(), EnumSet.of(first, rest), box.content()));
  }

  /// The sandboxes that one of several clients looks after.
  List<String> share(int client, int clients) {
    return boxes.keySet().stream()
        .filter(id -> Math.floorMod(id.hashCode(), clients) == client)
        .toList();
  }

  Optional<String> anySnapshot(Random random) {
    List<String> all = List.copyOf(snapshots);
    return all.isEmpty() || random.nextBoolean()
        ? Optional.empty()
        : Optional.of(all.get(random.nextInt(all.size())));
  }

  /// Makes a sandbox and gives it content of its own.
  String create(Node node, Optional<String> snapshot) {
    String id = Bed.id();
    LaunchSpec.Source source =
        snapshot
            .<LaunchSpec.Source>map(LaunchSpec.Source.Snapshot::new)
            .orElse(new LaunchSpec.Source.Template(Bed.TEMPLATE));
    LaunchSpec spec = Bed.spec(id, source);
    boxes.put(id, new Box(spec, EnumSet.of(State.ABSENT, State.RUNNING), UNKNOWN));
    node.create(spec, Progress.NONE);
    set(id, State.RUNNING);
    write(node, id);
    return id;
  }

  void write(Node node, String id) {
    String content = "content " + contents.getAndIncrement() + " of " + id;
    Box box = box(id);
    boxes.put(id, new Box(box.spec(), box.may(), UNKNOWN));
    Bed.sh(node, id, "echo " + content + " > /root/own");
    boxes.put(id, new Box(box.spec(), box.may(), content + "\n"));
  }

  void pause(Node node, String id) {
    set(id, State.RUNNING, State.PAUSED);
    node.pause(id);
    set(id, State.PAUSED);
  }

  void resume(Node node, String id) {
    set(id, State.RUNNING, State.PAUSED);
    node.resume(id, box(id).spec());
    set(id, State.RUNNING);
  }

  void suspend(Node node, String id) {
    set(id, state(id), State.SUSPENDED);
    node.suspend(id);
    set(id, State.SUSPENDED);
  }

  void suspendDisk(Node node, String id) {
    set(id, state(id), State.SUSPENDED);
    node.suspend(id, false);
    set(id, State.SUSPENDED);
  }

  void wake(Node node, String id) {
    set(id, State.SUSPENDED, State.RUNNING);
    node.wake(id, box(id).spec());
    set(id, State.RUNNING);
  }

  void reboot(Node node, String id) {
    set(id, State.SUSPENDED, State.RUNNING);
    node.wake(id, box(id).spec(), false);
    set(id, State.RUNNING);
  }

  void snapshot(Node node, String id, String name) {
    if (snapshots.contains(name)) {
      return;
    }
    node.snapshot(id, name);
    snapshots.add(name);
  }

  void delete(Node node, String id) {
    set(id, state(id), State.ABSENT);
    node.delete(id);
    boxes.remove(id);
  }

  /// A daemon starts where another died: everything is as it must be, and says so.
  void recover(Node node) {
    Set<LaunchSpec> known = boxes.values().stream().map(Box::spec).collect(Collectors.toSet());
    Recovered found = node.recover(known);
    for (String id : Set.copyOf(boxes.keySet())) {
      State now =
          found.running().contains(id)
              ? State.RUNNING
              : found.paused().contains(id)
                  ? State.PAUSED
                  : found.suspended().contains(id) ? State.SUSPENDED : State.ABSENT;
      assertThat(box(id).may()).as("state of %s", id).contains(now);
      if (now == State.ABSENT) {
        // The core ends what was never made.
        node.delete(id);
        boxes.remove(id);
      } else {
        set(id, now);
      }
    }
    check(node);
  }

  /// One owner for everything, and nothing without one.
  void check(Node node) {
    Set<String> directories = new TreeSet<>();
    Set<String> alive = new TreeSet<>();
    for (Map.Entry<String, Box> entry : boxes.entrySet()) {
      String directory = directoryOf(entry.getKey());
      directories.add(directory);
      if (state(entry.getKey()) != State.SUSPENDED) {
        alive.add(directory);
        assertThat(bed.vm(directory).resolve("saved")).doesNotExist();
      }
      if (state(entry.getKey()) == State.RUNNING) {
        String own = Bed.sh(node, entry.getKey(), "cat /root/own; echo $SANDBOX");
        if (entry.getValue().content().equals(UNKNOWN)) {
          assertThat(own).endsWith(entry.getKey() + "\n");
        } else {
          assertThat(own).isEqualTo(entry.getValue().content() + entry.getKey() + "\n");
        }
      }
    }
    assertThat(bed.processes()).as("VM processes").isEqualTo(alive);
    assertThat(bed.vmDirectories()).as("VM directories").isEqualTo(directories);
    assertThat(node.capacity().vms()).as("promises").isEqualTo(alive.size());
    for (String part : Set.of("base", "snapshots", "vms")) {
      assertThat(bed.tree(part)).as(part).noneMatch(path -> path.contains(".partial"));
    }
    assertThat(bed.dir.resolve("aside")).doesNotExist();
  }

  private String directoryOf(String id) {
    return bed.vmDirectories().stream()
        .filter(
            name ->
                Journal.exists(bed.vm(name))
                    && Journal.read(bed.vm(name)).owner().equals(Optional.of(id)))
        .findFirst()
        .orElseThrow(() -> new AssertionError("no directory of " + id));
  }

  /// Everything that is there can be used, and then be removed without a rest.
  void useAndRemoveAll(Node node) {
    for (String id : Set.copyOf(boxes.keySet())) {
      switch (state(id)) {
        case PAUSED -> resume(node, id);
        case SUSPENDED -> wake(node, id);
        case RUNNING, ABSENT -> {}
      }
    }
    check(node);
    for (String id : Set.copyOf(boxes.keySet())) {
      delete(node, id);
    }
    for (String name : Bed.names(bed.dir.resolve("snapshots"))) {
      node.deleteSnapshot(name);
    }
    node.deleteTemplate(Bed.TEMPLATE);
    check(node);
    assertThat(bed.tree("base")).containsExactly("");
    assertThat(bed.tree("snapshots")).containsExactly("");
  }
}
