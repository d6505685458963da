package dev.space.http;

import java.util.Locale;

/// A method and a path template with its handler. `{name}` stands for one segment, `{name...}` at
/// the end for the rest of the path.
///
/// @param method upper case, or `*` for any
public record Route(String method, String template, Handler handler) {
  static final String ANY = "*";

  public Route {
    method = method.toUpperCase(Locale.ROOT);
  }
}
