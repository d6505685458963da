package dev.space;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/// The behaviours to hold are numbered 1 to 47; each is named by the tests that hold it, as in
/// `behaviour 9: …` or `behaviours 3, 5: …`. None may lose its last test.
class BehavioursTest {

  private static final int ALL = 47;

  /// Egress rules, their refusals and DNS: guests have no network yet.
  private static final Set<Integer> NOT_YET = Set.of(42, 43, 44);

  private static final Pattern NAME =
      Pattern.compile("@DisplayName\\(\\s*\"behaviours? ([0-9][0-9, and]*):");
  private static final Pattern NUMBER = Pattern.compile("[0-9]+");

  @Test
  void everyBehaviourHasATest() throws IOException {
    TreeMap<Integer, TreeSet<String>> held = new TreeMap<>();
    try (Stream<Path> all = Files.walk(Path.of("src/test/java"))) {
      for (Path file : all.filter(p -> p.toString().endsWith("Test.java")).toList()) {
        Matcher names = NAME.matcher(Files.readString(file));
        while (names.find()) {
          Matcher numbers = NUMBER.matcher(names.group(1));
          while (numbers.find()) {
            held.computeIfAbsent(Integer.valueOf(numbers.group()), _ -> new TreeSet<>())
                .add(file.getFileName().toString());
          }
        }
      }
    }
    TreeSet<Integer> missing = new TreeSet<>();
    for (int n = 1; n <= ALL; n++) {
      if (!held.containsKey(n) && !NOT_YET.contains(n)) {
        missing.add(n);
      }
    }
    assertThat(missing).as("behaviours without a test; there are tests for %s", held).isEmpty();
    assertThat(held.keySet())
        .as("what is held is no exception, and no number is made up")
        .doesNotContainAnyElementsOf(NOT_YET)
        .allMatch(n -> n >= 1 && n <= ALL);
  }
}
