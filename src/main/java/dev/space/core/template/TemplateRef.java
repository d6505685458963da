package dev.space.core.template;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// How callers name a template: `name`, `name:tag` or `sha256:<64 hex digits>`.
public sealed interface TemplateRef {

  /// A name and a tag; `latest` when none was given.
  record Tagged(String name, String tag) implements TemplateRef {
    @Override
    public String toString() {
      return name + ":" + tag;
    }
  }

  /// The digest itself, as `sha256:…`.
  record Digest(String digest) implements TemplateRef {
    @Override
    public String toString() {
      return digest;
    }
  }

  Pattern TAGGED =
      Pattern.compile("([a-z0-9][a-z0-9._/-]{0,127})(?::([A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?");
  Pattern DIGEST = Pattern.compile("sha256:[0-9a-f]{64}");

  /// Reads a reference.
  ///
  /// @throws dev.space.core.error.SpaceException INVALID_REQUEST when the text is neither form
  static TemplateRef parse(String text) {
    if (DIGEST.matcher(text).matches()) {
      return new Digest(text);
    }
    Matcher m = TAGGED.matcher(text);
    if (!m.matches()) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "'" + text + "' is not a template reference")
          .remedy("Use name, name:tag or sha256:<digest>; names are lower case.")
          .toException();
    }
    return new Tagged(m.group(1), m.group(2) == null ? "latest" : m.group(2));
  }
}
