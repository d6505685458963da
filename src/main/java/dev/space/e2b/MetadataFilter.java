package dev.space.e2b;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/// The metadata filter of lists. The SDKs encode each key and value, join the pairs as a form,
/// which encodes again, and the HTTP layer encodes the whole: three layers, of which the query's
/// decoding has taken off the outermost.
final class MetadataFilter {

  private MetadataFilter() {}

  static Map<String, String> parse(String onceDecoded) {
    Map<String, String> filter = new LinkedHashMap<>();
    for (String pair : onceDecoded.split("&")) {
      if (pair.isEmpty()) {
        continue;
      }
      int equals = pair.indexOf('=');
      String key = equals < 0 ? pair : pair.substring(0, equals);
      String value = equals < 0 ? "" : pair.substring(equals + 1);
      filter.put(decode(decode(key)), decode(decode(value)));
    }
    return filter;
  }

  private static String decode(String text) {
    try {
      return URLDecoder.decode(text, StandardCharsets.UTF_8);
    } catch (IllegalArgumentException e) {
      throw new E2bError(400, "the metadata filter is not well encoded");
    }
  }
}
