package dev.space.cli;

import java.util.ArrayList;
import java.util.List;
import tools.jackson.databind.JsonNode;

/// Reads lists page by page.
final class Pages {

  private static final int PAGE = 100;

  private Pages() {}

  /// The items of a list, up to a limit.
  ///
  /// @param target path with a query that ends in `?` or in a parameter
  static List<JsonNode> read(Api api, String target, int limit) {
    List<JsonNode> all = new ArrayList<>();
    String cursor = "";
    do {
      int wanted = Math.min(PAGE, limit - all.size());
      String more = cursor.isEmpty() ? "" : "&cursor=" + Api.part(cursor);
      JsonNode page = api.get(target + "&limit=" + wanted + more);
      page.path("items").forEach(all::add);
      cursor = page.path("next").asString("");
    } while (!cursor.isEmpty() && all.size() < limit);
    return all;
  }
}
