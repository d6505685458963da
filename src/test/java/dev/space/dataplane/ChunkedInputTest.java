package dev.space.dataplane;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.Seeded;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

/// Chunked bodies of servers in guests: what is well formed is read to the byte, all else ends in
/// an error.
class ChunkedInputTest {

  @Test
  void any_division_into_chunks_is_read_back() {
    Seeded.times(
        500,
        input -> {
          var body = new ByteArrayOutputStream();
          var wire = new ByteArrayOutputStream();
          for (int i = input.below(10); i > 0; i--) {
            byte[] chunk = input.bytes(300);
            if (chunk.length > 0) {
              String size = Integer.toHexString(chunk.length) + (i % 2 == 0 ? ";a=b" : "");
              ascii(wire, size + "\r\n");
              body.writeBytes(chunk);
              wire.writeBytes(chunk);
              ascii(wire, "\r\n");
            }
          }
          ascii(wire, "0\r\nTrailer: x\r\n\r\nnext");
          var in = new ByteArrayInputStream(wire.toByteArray());
          try {
            assertThat(new ChunkedInput(in).readAllBytes()).isEqualTo(body.toByteArray());
            assertThat(in.readAllBytes()).isEqualTo("next".getBytes(StandardCharsets.US_ASCII));
          } catch (IOException e) {
            throw new AssertionError(e);
          }
        });
  }

  @Test
  void any_bytes_are_a_body_or_an_error() {
    Seeded.times(
        2000,
        input -> {
          byte[] bytes = input.bytes(200);
          if (input.below(2) == 0) {
            bytes =
                input
                    .joined(
                        java.util.List.of(
                            "5\r\n", "hello", "\r\n", "0", "ffffffffffffffff", ";", "\n"),
                        12)
                    .getBytes(StandardCharsets.ISO_8859_1);
          }
          InputStream in = new ChunkedInput(new ByteArrayInputStream(bytes));
          try {
            assertThat(in.readAllBytes().length).isLessThanOrEqualTo(bytes.length);
          } catch (IOException _) {
            // Refused, as most of it has to be.
          }
        });
  }

  private static void ascii(ByteArrayOutputStream to, String text) {
    to.writeBytes(text.getBytes(StandardCharsets.US_ASCII));
  }
}
