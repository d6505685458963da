package dev.space.node;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NodeTest {

  @TempDir Path dir;

  @Test
  void aSandboxRunsCommandsAndLeavesNothingWhenDeleted() {
    Bed bed = new Bed(dir);
    Node node = bed.node();
    String id = Bed.create(node);
    assertThat(Bed.sh(node, id, "echo hello; exit 3")).isEqualTo("hello\n");
    assertThat(Bed.sh(node, id, "echo $SANDBOX > /tmp/f; cat /tmp/f")).isEqualTo(id + "\n");
    node.delete(id);
    node.delete(id);
    assertThat(bed.vmDirectories()).isEmpty();
    assertThat(bed.processes()).isEmpty();
    assertThat(node.capacity().vms()).isZero();
  }
}
