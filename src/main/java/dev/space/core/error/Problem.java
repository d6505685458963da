package dev.space.core.error;

import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.util.Optional;

/// One error as a value: what happened, why, and what to do about it.
///
/// @param code what callers may rely on
/// @param detail what happened, one sentence, without secrets
/// @param cause why, when known
/// @param remedy what the reader can do, when there is something
public record Problem(
    ErrorCode code, String detail, Optional<String> cause, Optional<String> remedy) {

  /// An error of which only the event itself is known.
  public static Problem of(ErrorCode code, String detail) {
    return new Problem(code, detail, Optional.empty(), Optional.empty());
  }

  /// The same error with its cause.
  public Problem because(String why) {
    return new Problem(code, detail, Optional.of(why), remedy);
  }

  /// The same because of an exception, in words for people.
  public Problem because(Exception e) {
    return because(words(e));
  }

  /// What went wrong, without the names of classes. Those of the file system say it by their class
  /// alone when the system gave no reason.
  private static String words(Exception e) {
    String message = e.getMessage();
    if (message == null || message.isBlank()) {
      return e.toString();
    }
    return switch (e) {
      case NoSuchFileException _ -> message + ": no such file or directory";
      case AccessDeniedException _ -> message + ": permission denied";
      case FileAlreadyExistsException _ -> message + ": it exists already";
      case NotDirectoryException _ -> message + ": not a directory";
      case DirectoryNotEmptyException _ -> message + ": the directory is not empty";
      default -> message;
    };
  }

  /// The same error with what to do about it.
  public Problem remedy(String action) {
    return new Problem(code, detail, cause, Optional.of(action));
  }

  /// The exception that carries this error to the caller.
  public SpaceException toException() {
    return new SpaceException(this);
  }

  /// The exception that carries this error and the throwable behind it.
  public SpaceException toException(Throwable source) {
    return new SpaceException(this, source);
  }

  /// What happened and why in one line, for logs and terminals.
  public String oneLine() {
    return detail + cause.map(c -> ": " + c).orElse("");
  }
}
