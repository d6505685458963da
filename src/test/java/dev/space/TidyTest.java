package dev.space;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/// The rules of the house that a compiler doesn't know. Every finding names file and line.
class TidyTest {

  private static final Path ROOT = Path.of("").toAbsolutePath();
  private static final int FILE_LINES_MAX = 500;

  /// Folders that hold nothing of ours.
  private static final Set<String> NOT_OURS =
      Set.of(".git", ".space", "target", "node_modules", "bin", "__pycache__");

  private static final Set<String> BANNED_NAMES =
      Set.of("util", "manager", "helper", "impl", "common");

  /// Words are put together here so that this file doesn't find itself.
  private static final Pattern UNFINISHED =
      Pattern.compile("\\b(TO" + "DO|FIX" + "ME|X" + "XX)\\b");

  /// Hosts that serve packages. Which of them is asked is a matter of each machine's settings.
  private static final Pattern REGISTRY =
      Pattern.compile(
          "\\b(repo1?\\.maven|repo\\.maven\\.apache|central\\.sonatype|oss\\.sonatype|registry\\.npmjs"
              + "|pypi|files\\.pythonhosted|proxy\\.golang|sum\\.golang|deb\\.debian|snapshot\\.debian"
              + "|security\\.debian|ftp\\.debian|registry-1\\.docker|docker|ghcr|quay|gcr|mcr\\.microsoft)"
              + "\\.(org|com|io)\\b");

  private static final Pattern LINK = Pattern.compile("\\[[^\\]]*]\\(([^)\\s]+)\\)");

  @Test
  void filesStayShort() throws IOException {
    List<String> long_ = new ArrayList<>();
    for (Path file : files(".java", ".go", ".sh", ".py")) {
      int lines = lines(file).size();
      boolean generated = name(file).endsWith(".pb.go");
      if (!generated && lines > FILE_LINES_MAX) {
        long_.add(name(file) + ": " + lines + " lines");
      }
    }
    assertThat(long_).as("files over %d lines", FILE_LINES_MAX).isEmpty();
  }

  @Test
  void nothingIsUnfinished() throws IOException {
    assertThat(matches(UNFINISHED, files(".java", ".go", ".sh", ".py", ".md", ".yaml", ".proto")))
        .isEmpty();
  }

  @Test
  void noMergeIsHalfDone() throws IOException {
    Pattern marker = Pattern.compile("^(<{7} |>{7} |={7}$)");
    assertThat(
            matches(
                marker,
                files(".java", ".go", ".sh", ".py", ".md", ".yaml", ".proto", ".sql", ".xml", "")))
        .isEmpty();
  }

  @Test
  void mainCodeNeverSleepsAndOnlyTheCommandLinePrints() throws IOException {
    List<Path> main = new ArrayList<>(files(".java"));
    main.removeIf(file -> !name(file).startsWith("src/main/java/"));
    assertThat(main).isNotEmpty();
    assertThat(matches(Pattern.compile("\\bThread\\.sleep\\("), main)).isEmpty();
    main.removeIf(file -> name(file).startsWith("src/main/java/dev/space/cli/"));
    assertThat(matches(Pattern.compile("\\bSystem\\.(out|err)\\b"), main)).isEmpty();
    assertThat(matches(Pattern.compile("\\.printStackTrace\\(\\)"), main)).isEmpty();
    assertThat(matches(Pattern.compile("\\bnew RuntimeException\\("), main)).isEmpty();
  }

  @Test
  void testsNeverSleep() throws IOException {
    List<Path> tests = new ArrayList<>(files(".java"));
    tests.removeIf(file -> !name(file).startsWith("src/test/java/"));
    assertThat(matches(Pattern.compile("\\bThread\\.sleep" + "\\(\\d"), tests)).isEmpty();
  }

  @Test
  void namesSayWhatThingsAre() throws IOException {
    List<String> banned = new ArrayList<>();
    for (Path file : files(".java")) {
      for (Path part : ROOT.relativize(file)) {
        for (String word :
            part.toString().replace(".java", "").split("(?<=[a-z])(?=[A-Z])|[._-]")) {
          String plain = word.toLowerCase(java.util.Locale.ROOT);
          if (BANNED_NAMES.contains(plain) || BANNED_NAMES.contains(plain.replaceAll("s$", ""))) {
            banned.add(name(file));
          }
        }
      }
    }
    assertThat(banned).isEmpty();
  }

  @Test
  void noFileNamesAPackageRegistry() throws IOException {
    assertThat(
            matches(
                REGISTRY,
                files(
                    ".java",
                    ".go",
                    ".mod",
                    ".sh",
                    ".py",
                    ".md",
                    ".yaml",
                    ".xml",
                    ".json",
                    ".properties",
                    "")))
        .isEmpty();
  }

  @Test
  void documentsHaveOneTitleAndLinksThatLeadSomewhere() throws IOException {
    List<String> faults = new ArrayList<>();
    for (Path file : files(".md")) {
      int titles = 0;
      boolean code = false;
      for (String line : lines(file)) {
        if (line.startsWith("```")) {
          code = !code;
        }
        if (code) {
          continue;
        }
        titles += line.startsWith("# ") ? 1 : 0;
        Matcher link = LINK.matcher(line);
        while (link.find()) {
          String to = link.group(1);
          Path target = file.resolveSibling(to.replaceAll("#.*", ""));
          if (!to.startsWith("#") && !to.contains("://") && !Files.exists(target)) {
            faults.add(name(file) + ": " + to + " leads nowhere");
          }
        }
      }
      if (titles != 1) {
        faults.add(name(file) + ": " + titles + " titles");
      }
    }
    assertThat(faults).isEmpty();
  }

  private static List<String> matches(Pattern pattern, List<Path> files) throws IOException {
    List<String> found = new ArrayList<>();
    for (Path file : files) {
      if (name(file).endsWith("TidyTest.java")) {
        continue;
      }
      List<String> lines = lines(file);
      for (int i = 0; i < lines.size(); i++) {
        if (pattern.matcher(lines.get(i)).find()) {
          found.add(name(file) + ":" + (i + 1) + ": " + lines.get(i).strip());
        }
      }
    }
    return found;
  }

  private static String name(Path file) {
    return ROOT.relativize(file).toString();
  }

  private static List<String> lines(Path file) throws IOException {
    try (Stream<String> lines = Files.readString(file).lines()) {
      return lines.toList();
    }
  }

  /// Our own files with one of these endings; the empty one stands for scripts without any.
  private static List<Path> files(String... endings) throws IOException {
    TreeSet<Path> found = new TreeSet<>();
    Files.walkFileTree(
        ROOT,
        new SimpleFileVisitor<>() {
          @Override
          public FileVisitResult preVisitDirectory(Path dir, BasicFileAttributes about) {
            boolean ours = dir.equals(ROOT) || !NOT_OURS.contains(dir.getFileName().toString());
            return ours ? FileVisitResult.CONTINUE : FileVisitResult.SKIP_SUBTREE;
          }

          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes about) {
            String name = file.getFileName().toString();
            for (String ending : endings) {
              boolean script = ending.isEmpty() && (name.equals("space") || name.equals("run"));
              if (about.isRegularFile()
                  && (script || (!ending.isEmpty() && name.endsWith(ending)))) {
                found.add(file);
              }
            }
            return FileVisitResult.CONTINUE;
          }
        });
    return List.copyOf(found);
  }
}
