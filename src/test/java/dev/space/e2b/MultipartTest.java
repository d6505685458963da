package dev.space.e2b;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.error.SpaceException;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MultipartTest {

  private static final String TYPE = "multipart/form-data; boundary=b";

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "filename=\"a.txt\" | a.txt",
        "filename=\"/tmp/dir/a b.txt\" | /tmp/dir/a b.txt",
        "filename=\"C:\\\\x\" | C:\\x",
        "filename=\"q%22uote\" | q\"uote",
        "filename=\"q\\\"uote\" | q\"uote",
        "filename=\"ü漢🎉\" | ü漢🎉",
        "filename=plain.txt | plain.txt",
        "filename=\"has; name=x\" | has; name=x"
      })
  void fileNamesAreRaw(String parameter, String name) throws IOException {
    assertThat(read("Content-Disposition: form-data; name=\"file\"; " + parameter))
        .containsExactly("file|" + name + "|body");
  }

  @Test
  void aPartMayHaveNoFileName() throws IOException {
    assertThat(read("content-disposition: form-data; name=\"file\""))
        .containsExactly("file|-|body");
  }

  @Test
  void partsKeepTheirOrderAndAnUnreadOneIsSkipped() throws IOException {
    String body = part("one", "1\r\n--not a boundary") + part("two", "") + "--b--\r\n";
    List<String> names = new ArrayList<>();
    Multipart.read(TYPE, in(body), (_, filename, _) -> names.add(filename.orElse("")));
    assertThat(names).containsExactly("one", "two");
  }

  @Test
  void brokenBodiesAreTheCallersFault() {
    for (String broken : new String[] {"", "--b", "--b\r\nContent-", "nothing at all"}) {
      assertThatThrownBy(
              () -> Multipart.read(TYPE, in(broken), (_, _, part) -> part.readAllBytes()))
          .isInstanceOf(SpaceException.class);
    }
    assertThatThrownBy(() -> Multipart.read("multipart/form-data", in(""), (_, _, _) -> {}))
        .hasMessageContaining("multipart");
  }

  @Test
  void noBytesBreakIt() {
    byte[] whole = (part("a", "body") + "--b--\r\n").getBytes(StandardCharsets.UTF_8);
    var random = new Random(11);
    for (int i = 0; i < 3000; i++) {
      byte[] bytes = whole.clone();
      for (int change = 1 + random.nextInt(4); change > 0; change--) {
        bytes[random.nextInt(bytes.length)] = (byte) random.nextInt(256);
      }
      try {
        Multipart.read(TYPE, new ByteArrayInputStream(bytes), (_, _, part) -> part.readAllBytes());
      } catch (SpaceException _) {
        // Refused.
      } catch (IOException e) {
        throw new AssertionError("not told as malformed: " + i, e);
      }
    }
  }

  private static String part(String name, String body) {
    return "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\""
        + name
        + "\"\r\n\r\n"
        + body
        + "\r\n";
  }

  private static List<String> read(String header) throws IOException {
    List<String> parts = new ArrayList<>();
    Multipart.read(
        TYPE,
        in("--b\r\n" + header + "\r\nContent-Type: text/plain\r\n\r\nbody\r\n--b--\r\n"),
        (name, filename, body) ->
            parts.add(
                name
                    + "|"
                    + filename.orElse("-")
                    + "|"
                    + new String(body.readAllBytes(), StandardCharsets.UTF_8)));
    return parts;
  }

  private static ByteArrayInputStream in(String text) {
    return new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8));
  }
}
