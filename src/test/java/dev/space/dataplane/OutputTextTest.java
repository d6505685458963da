package dev.space.dataplane;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.Seeded;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.json.JsonMapper;

@DisplayName("behaviour 5: characters arrive whole in text mode, bytes unchanged in any")
class OutputTextTest {

  private static final JsonMapper JSON = JsonMapper.builder().build();

  static byte[] bytes(byte[] json) {
    var node = JSON.readTree(json);
    return node.has("text")
        ? node.get("text").asString().getBytes(StandardCharsets.UTF_8)
        : Base64.getDecoder().decode(node.get("base64").asString());
  }

  private static boolean valid(byte[] data) {
    try {
      StandardCharsets.UTF_8
          .newDecoder()
          .onMalformedInput(CodingErrorAction.REPORT)
          .decode(ByteBuffer.wrap(data));
      return true;
    } catch (CharacterCodingException e) {
      return false;
    }
  }

  private static void comesBack(byte[] data) {
    byte[] json = OutputJson.text(data);
    assertThat(bytes(json)).isEqualTo(data);
    assertThat(JSON.readTree(json).has("text")).isEqualTo(valid(data));
    assertThat(bytes(OutputJson.base64(data))).isEqualTo(data);
    assertThat(json).doesNotContain('\n', '\r');
  }

  @Test
  void any_text_is_text() {
    Seeded.times(500, input -> comesBack(input.text(200).getBytes(StandardCharsets.UTF_8)));
  }

  @Test
  void any_bytes_come_back() {
    Seeded.times(500, input -> comesBack(input.bytes(200)));
  }

  @Test
  void every_two_bytes_come_back() {
    for (int i = 0; i < 65_536; i++) {
      comesBack(new byte[] {(byte) (i >> 8), (byte) i});
    }
  }

  @Test
  void the_borders_of_utf8_are_kept() {
    for (String hex :
        new String[] {
          "e0a080",
          "e09fbf",
          "ed9fbf",
          "eda080",
          "f0908080",
          "f08fbfbf",
          "f48fbfbf",
          "f4908080",
          "c080",
          "c1bf",
          "c280",
          "f5808080",
          "efbfbd",
          "00",
          "7f",
          "80",
          "ff"
        }) {
      comesBack(java.util.HexFormat.of().parseHex(hex));
    }
  }

  @Test
  void text_that_is_divided_anywhere_is_put_together() {
    Seeded.times(
        500,
        input -> {
          byte[] whole = input.text(200).getBytes(StandardCharsets.UTF_8);
          assertThat(divided(whole, input.bytes(100), true)).isEqualTo(whole);
        });
  }

  @Test
  void bytes_that_are_divided_anywhere_are_put_together() {
    Seeded.times(
        500,
        input -> {
          byte[] whole = input.bytes(200);
          assertThat(divided(whole, input.bytes(100), false)).isEqualTo(whole);
        });
  }

  private static byte[] divided(byte[] whole, byte[] cuts, boolean text) {
    var out = new ByteArrayOutputStream();
    var hold = new CharacterHold();
    int at = 0;
    for (int i = 0; at < whole.length; i++) {
      int length = i < cuts.length ? Math.abs(cuts[i]) % 5 : whole.length;
      int to = Math.min(whole.length, at + length);
      byte[] piece = hold.next(Arrays.copyOfRange(whole, at, to));
      assertThat(!text || valid(piece)).isTrue();
      out.writeBytes(piece);
      // Whoever comes back here goes on in the same way.
      var again = new CharacterHold();
      again.startAfter(Arrays.copyOfRange(whole, Math.max(0, to - 3), to));
      assertThat(again.rest()).isEqualTo(copyOfRest(hold));
      at = to;
    }
    out.writeBytes(hold.rest());
    return out.toByteArray();
  }

  private static byte[] copyOfRest(CharacterHold hold) {
    byte[] rest = hold.rest();
    hold.startAfter(rest);
    return rest;
  }
}
