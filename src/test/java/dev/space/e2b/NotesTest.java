package dev.space.e2b;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.Samples;
import dev.space.core.sandbox.Sandbox;
import dev.space.core.sandbox.SandboxState;
import dev.space.e2b.Notes.Settings;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class NotesTest {

  @Test
  void notesAreKeptBesideTheMetadataAndNotSeenInIt() {
    var settings =
        new Settings(true, true, Optional.of("{\"a\":1}"), Optional.of(Duration.ofMinutes(7)));
    Sandbox sandbox = sandbox(Notes.with(Map.of("mine", "1"), settings));
    assertThat(Notes.of(sandbox)).isEqualTo(settings);
    assertThat(Notes.visible(sandbox)).isEqualTo(Map.of("mine", "1"));
  }

  @Test
  void withoutNotesNothingIsAdded() {
    var none = new Settings(false, false, Optional.empty(), Optional.empty());
    assertThat(Notes.with(Map.of("mine", "1"), none)).isEqualTo(Map.of("mine", "1"));
    assertThat(Notes.of(sandbox(Map.of()))).isEqualTo(none);
  }

  @Test
  void callersCannotWriteNotes() {
    var none = new Settings(false, false, Optional.empty(), Optional.empty());
    assertThatThrownBy(() -> Notes.with(Map.of("space.e2b/insecure", "true"), none))
        .isInstanceOf(E2bError.class);
  }

  @Test
  void whatOthersWroteIntoNotesIsNoError() {
    for (String text : new String[] {"", "soon", "-PT1S", "PT0S"}) {
      assertThat(Notes.of(sandbox(Map.of("space.e2b/timeout", text))).timeout()).isEmpty();
    }
  }

  private static Sandbox sandbox(Map<String, String> metadata) {
    return Samples.withMetadata(
        Samples.sandbox("i1", "default", Samples.NOW, SandboxState.RUNNING), metadata);
  }
}
