package dev.space.core.sandbox;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/// The state machine against a table that was written on its own, so that every change is made
/// twice, on purpose.
class SandboxTransitionsTest {

  private static final Path DIAGRAM = Path.of("docs/states.md");

  /// One line a state: `EVENT>STATE` for what is legal; all else is illegal.
  private static final String LEGAL =
      """
      CREATING CREATE_SUCCEEDED>RUNNING CREATE_FAILED>FAILED GUEST_STOPPED>FAILED GUEST_FAILED>FAILED DELETE_REQUESTED>DELETING
      RUNNING PAUSE_REQUESTED>PAUSING SUSPEND_REQUESTED>SUSPENDING GUEST_STOPPED>STOPPED GUEST_FAILED>FAILED DELETE_REQUESTED>DELETING
      PAUSING PAUSE_SUCCEEDED>PAUSED PAUSE_FAILED>RUNNING GUEST_STOPPED>STOPPED GUEST_FAILED>FAILED DELETE_REQUESTED>DELETING
      PAUSED WAKE_REQUESTED>RESUMING SUSPEND_REQUESTED>SUSPENDING GUEST_STOPPED>STOPPED GUEST_FAILED>FAILED DELETE_REQUESTED>DELETING
      RESUMING WAKE_SUCCEEDED>RUNNING WAKE_FAILED>PAUSED GUEST_STOPPED>STOPPED GUEST_FAILED>FAILED DELETE_REQUESTED>DELETING
      SUSPENDING SUSPEND_SUCCEEDED>SUSPENDED SUSPEND_ROLLED_BACK_TO_RUNNING>RUNNING SUSPEND_ROLLED_BACK_TO_PAUSED>PAUSED GUEST_STOPPED>STOPPED GUEST_FAILED>FAILED DELETE_REQUESTED>DELETING
      SUSPENDED WAKE_REQUESTED>WAKING GUEST_FAILED>FAILED DELETE_REQUESTED>DELETING
      WAKING WAKE_SUCCEEDED>RUNNING WAKE_FAILED>SUSPENDED DELETE_REQUESTED>DELETING
      STOPPED DELETE_REQUESTED>DELETING
      FAILED DELETE_REQUESTED>DELETING
      DELETING DELETE_REQUESTED>DELETING DELETE_SUCCEEDED>DELETED
      DELETED DELETE_REQUESTED>DELETED
      """;

  private static Map<SandboxState, Map<SandboxEvent, SandboxState>> expected() {
    Map<SandboxState, Map<SandboxEvent, SandboxState>> table = new LinkedHashMap<>();
    for (String line : LEGAL.lines().toList()) {
      String[] words = line.split(" ");
      Map<SandboxEvent, SandboxState> row = new LinkedHashMap<>();
      for (int i = 1; i < words.length; i++) {
        String[] move = words[i].split(">");
        row.put(SandboxEvent.valueOf(move[0]), SandboxState.valueOf(move[1]));
      }
      table.put(SandboxState.valueOf(words[0]), row);
    }
    return table;
  }

  @TestFactory
  java.util.List<DynamicTest> every_pair_is_legal_or_illegal_as_the_table_says() {
    Map<SandboxState, Map<SandboxEvent, SandboxState>> table = expected();
    assertThat(table).hasSize(SandboxState.values().length);
    java.util.List<DynamicTest> tests = new java.util.ArrayList<>();
    table.forEach(
        (state, row) ->
            tests.add(
                DynamicTest.dynamicTest(
                    state.wire(),
                    () -> {
                      for (SandboxEvent event : SandboxEvent.values()) {
                        assertThat(SandboxTransitions.next(state, event))
                            .as("%s on %s", state, event)
                            .isEqualTo(Optional.ofNullable(row.get(event)));
                      }
                    })));
    return tests;
  }

  @Test
  void every_state_is_reached_and_every_event_does_something() {
    Set<SandboxState> reached = EnumSet.of(SandboxState.CREATING);
    Set<SandboxEvent> used = EnumSet.noneOf(SandboxEvent.class);
    Deque<SandboxState> next = new ArrayDeque<>(reached);
    while (!next.isEmpty()) {
      SandboxState state = next.poll();
      for (SandboxEvent event : SandboxEvent.values()) {
        SandboxTransitions.next(state, event)
            .ifPresent(
                to -> {
                  used.add(event);
                  if (reached.add(to)) {
                    next.add(to);
                  }
                });
      }
    }
    assertThat(reached).containsExactlyInAnyOrder(SandboxState.values());
    assertThat(used).containsExactlyInAnyOrder(SandboxEvent.values());
  }

  @Test
  void a_delete_is_possible_everywhere_and_nothing_leads_out_of_a_tombstone() {
    for (SandboxState state : SandboxState.values()) {
      assertThat(SandboxTransitions.next(state, SandboxEvent.DELETE_REQUESTED)).isPresent();
    }
    for (SandboxEvent event : SandboxEvent.values()) {
      assertThat(SandboxTransitions.next(SandboxState.DELETED, event))
          .isIn(Optional.empty(), Optional.of(SandboxState.DELETED));
      assertThat(SandboxTransitions.next(SandboxState.DELETING, event))
          .isIn(
              Optional.empty(),
              Optional.of(SandboxState.DELETING),
              Optional.of(SandboxState.DELETED));
    }
  }

  /// The diagram in the docs is written by this test: run it with `-Dspace.docs.write=true`.
  @Test
  void the_diagram_in_the_docs_is_the_table() throws IOException {
    if (Boolean.getBoolean("space.docs.write")) {
      Files.createDirectories(DIAGRAM.toAbsolutePath().getParent());
      Files.writeString(DIAGRAM, page());
    }
    assertThat(Files.readString(DIAGRAM)).isEqualTo(page());
  }

  private static String page() {
    TreeSet<String> moves = new TreeSet<>();
    for (SandboxState state : SandboxState.values()) {
      for (SandboxEvent event : SandboxEvent.values()) {
        SandboxTransitions.next(state, event)
            .filter(to -> to != state && event != SandboxEvent.DELETE_REQUESTED)
            .ifPresent(
                to ->
                    moves.add(
                        "    %s --> %s: %s"
                            .formatted(
                                state.wire(),
                                to.wire(),
                                event.name().toLowerCase().replace('_', ' '))));
      }
    }
    return """
        # States of a sandbox

        Every change of state is one row of `SandboxTransitions`; a pair of state and event that has no
        row is illegal and changes nothing. This page is made from that table by a test, which fails
        when the two differ.

        `delete requested` leads from every state to `deleting`; those arrows are left out.

        ```mermaid
        stateDiagram-v2
            [*] --> creating
        %s
            deleted --> [*]
        ```

        | call | from | while it is done | to | if it fails |
        |---|---|---|---|---|
        | create | | creating | running | failed, deleted an hour later |
        | pause | running | pausing | paused | running |
        | wake | paused | resuming | running | paused |
        | suspend | running, paused | suspending | suspended | as before |
        | wake | suspended | waking | running | suspended |
        | snapshot, fork | running, paused | as before | as before | as before |
        | delete | every state | deleting | deleted | deleting; delete again |

        Calls wait for those before them. A call is judged by the state that the sandbox will be in when
        its turn comes; asking for what is already so succeeds and does nothing. A delete waits for
        nothing and cancels what is open.

        `timeout` counts from when the sandbox first runs, and again from every extension. With
        `on_timeout: suspend` it stops counting while the sandbox is suspended for it, and the next
        wake gives the full time again; if the suspend fails it is tried again a minute later.
        `idle_timeout` counts while the sandbox runs and nothing uses it; time in which the service
        was down doesn't count.

        A fork of which some copies could not be made fails; its results are the copies that run,
        nothing is left of the others. A fork whose source is deleted meanwhile is cancelled and no
        copy stays.

        After a stop of the service at any instruction the next start finishes what the node shows to
        be done, rolls back what it shows not to be, and begins what had not begun.
        """
        .formatted(String.join("\n", moves));
  }
}
