package dev.space.e2b;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class MetadataFilterTest {

  /// As seen on the wire, less the outermost layer: `metadata=a%252520b%3Dc%252526d`.
  @Test
  void decodesWhatSdksSend() {
    assertThat(MetadataFilter.parse("a%2520b=c%2526d")).isEqualTo(Map.of("a b", "c&d"));
    assertThat(MetadataFilter.parse("a=1&b%2520=2")).isEqualTo(Map.of("a", "1", "b ", "2"));
    assertThat(MetadataFilter.parse("")).isEmpty();
  }

  @Test
  void everyTextSurvives() {
    var random = new Random(7);
    for (int i = 0; i < 2000; i++) {
      Map<String, String> wanted = new LinkedHashMap<>();
      var query = new StringBuilder();
      for (int pair = random.nextInt(4); pair > 0; pair--) {
        String key = text(random) + "k";
        String value = text(random);
        if (wanted.putIfAbsent(key, value) == null) {
          query.append(query.isEmpty() ? "" : "&");
          query.append(twice(key)).append('=').append(twice(value));
        }
      }
      assertThat(MetadataFilter.parse(query.toString())).isEqualTo(wanted);
    }
  }

  @Test
  void brokenEncodingIsTheCallersFault() {
    assertThatThrownBy(() -> MetadataFilter.parse("a=%zz"))
        .isInstanceOf(E2bError.class)
        .hasMessageContaining("well encoded");
  }

  private static String text(Random random) {
    return random
        .ints(random.nextInt(6), 0x20, 0x2ff)
        .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append)
        .toString();
  }

  private static String twice(String text) {
    return once(once(text));
  }

  private static String once(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
  }
}
