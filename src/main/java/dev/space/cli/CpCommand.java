package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

@Command(
    name = "cp",
    description = {
      "Copy a file or a whole tree into a sandbox or out of it. One side is ID:PATH.",
      "A target that is a folder, or ends in a slash, gets the source below its own name."
    },
    footerHeading = "%nExamples:%n",
    footer = {
      "  space cp data.csv ID:/home/user/",
      "  space cp ID:/home/user/result ./result",
      "  space cp -u root site ID:/srv/site"
    })
final class CpCommand implements Callable<Integer> {

  private static final Pattern REMOTE = Pattern.compile("([a-z0-9]{4,64}):(.+)", Pattern.DOTALL);

  private final Root root;

  @Option(
      names = {"-u", "--user"},
      paramLabel = "NAME",
      description = "Who reads and writes in the sandbox (default: the template's user).")
  private Optional<String> user = Optional.empty();

  @Parameters(index = "0", paramLabel = "SRC", description = "A local path or ID:PATH.")
  private String source = "";

  @Parameters(index = "1", paramLabel = "DST", description = "A local path or ID:PATH.")
  private String target = "";

  CpCommand(Root root) {
    this.root = root;
  }

  @Override
  public Integer call() {
    Matcher from = REMOTE.matcher(source);
    Matcher to = REMOTE.matcher(target);
    if (from.matches() == to.matches()) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "One side has to be a path in a sandbox, ID:PATH")
          .remedy("A local file whose name holds a colon is written ./name:with:colons")
          .toException();
    }
    try (Progress progress = root.progress()) {
      if (to.matches()) {
        SandboxFiles files = files(to.group(1), progress);
        Path local = Path.of(source);
        String path = files.below(to.group(2), local.toAbsolutePath().normalize().getFileName());
        if (Files.isDirectory(local)) {
          files.uploadTree(local, path);
        } else {
          files.uploadFile(local, path);
        }
      } else {
        SandboxFiles files = files(from.group(1), progress);
        String path = from.group(2);
        Path local = Path.of(target);
        if (Files.isDirectory(local) || target.endsWith("/")) {
          local = local.resolve(path.replaceFirst("/+$", "").replaceFirst(".*/", ""));
        }
        if (files.isFolder(path)) {
          files.downloadTree(path, local);
        } else {
          files.downloadFile(path, local);
        }
      }
    } catch (IOException e) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "Copying failed")
          .because(e)
          .remedy("Check that the paths on this machine can be read and written.")
          .toException(e);
    }
    return ExitStatus.OK;
  }

  private SandboxFiles files(String id, Progress progress) {
    return new SandboxFiles(root.dataApi(), id, user, progress);
  }
}
