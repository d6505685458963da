package dev.space.e2b;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.ProcessExit;
import dev.space.e2b.proto.filesystem.EntryInfo;
import dev.space.e2b.proto.process.ProcessEvent;
import dev.space.e2b.proto.process.StartRequest;
import dev.space.e2b.proto.process.StartResponse;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.junit.jupiter.api.Test;

class CodecTest {

  private static final String START =
      "{\"process\":{\"cmd\":\"/bin/bash\",\"args\":[\"-l\",\"-c\",\"echo hi\"],\"envs\":{\"X\":\"1\"},"
          + "\"cwd\":\"/\"},\"stdin\":false}";

  @Test
  void readsWhatTheJavaScriptSdkSends() {
    StartRequest start = decode(Codec.JSON, utf8(START));
    assertThat(start.getProcess().getCmd()).isEqualTo("/bin/bash");
    assertThat(start.getProcess().getArgsList()).containsExactly("-l", "-c", "echo hi");
    assertThat(start.getProcess().getEnvsMap()).containsEntry("X", "1");
    assertThat(start.hasStdin()).isTrue();
    assertThat(start.getStdin()).isFalse();
  }

  @Test
  void unknownFieldsAndNothingAtAllAreTaken() {
    assertThat(decode(Codec.JSON, utf8("{\"newer\":{\"x\":[1]}}")).hasProcess()).isFalse();
    assertThat(decode(Codec.JSON, new byte[0]).hasStdin()).isFalse();
  }

  @Test
  void writesProto3Json() {
    assertThat(json(ProcessRpc.end(new ProcessExit(0, 0, false, false))))
        .isEqualTo("{\"exited\":true,\"status\":\"exit status 0\"}");
    assertThat(json(ProcessRpc.end(new ProcessExit(3, 0, false, false))))
        .isEqualTo(
            "{\"exitCode\":3,\"exited\":true,\"status\":\"exit status 3\",\"error\":\"exit status 3\"}");
    assertThat(json(ProcessRpc.end(new ProcessExit(0, 9, false, false))))
        .isEqualTo("{\"exitCode\":-1,\"status\":\"signal: killed\",\"error\":\"signal: killed\"}");
    assertThat(json(EntryInfo.newBuilder().setSize(5).build())).isEqualTo("{\"size\":\"5\"}");
    var data = ProcessEvent.DataEvent.newBuilder().setStdout(ByteString.copyFromUtf8("hi\n"));
    var event = ProcessEvent.newBuilder().setData(data);
    assertThat(json(StartResponse.newBuilder().setEvent(event).build()))
        .isEqualTo("{\"event\":{\"data\":{\"stdout\":\"aGkK\"}}}");
  }

  @Test
  void envelopesAreFlagsLengthAndBody() throws IOException {
    var out = new ByteArrayOutputStream();
    try (var writer = new EnvelopeWriter(out, Codec.JSON)) {
      writer.message(StartResponse.getDefaultInstance());
      writer.end(Connect.END_OK);
      writer.message(StartResponse.getDefaultInstance());
    }
    assertThat(out.toByteArray())
        .isEqualTo(new byte[] {0, 0, 0, 0, 2, '{', '}', 2, 0, 0, 0, 2, '{', '}'});
    var in = new DataInputStream(new ByteArrayInputStream(out.toByteArray()));
    assertThat(Connect.readEnvelope(in)).isEqualTo(new byte[] {'{', '}'});
  }

  @Test
  void tornCompressedAndHugeEnvelopesAreRefused() {
    byte[] whole = envelope(0, utf8(START));
    for (int length = 0; length < whole.length; length++) {
      byte[] torn = java.util.Arrays.copyOf(whole, length);
      assertThatThrownBy(() -> read(torn)).isInstanceOf(EOFException.class);
    }
    assertThatThrownBy(() -> read(envelope(1, new byte[0]))).hasMessageContaining("Compressed");
    for (int length : new int[] {-1, Integer.MIN_VALUE, 17 << 20}) {
      byte[] head = ByteBuffer.allocate(5).put((byte) 0).putInt(length).array();
      assertThatThrownBy(() -> read(head)).isInstanceOf(SpaceException.class);
    }
  }

  @Test
  void noBytesBreakTheCodecs() {
    byte[] binary = decode(Codec.JSON, utf8(START)).toByteArray();
    var random = new Random(3);
    for (int i = 0; i < 4000; i++) {
      Codec codec = random.nextBoolean() ? Codec.JSON : Codec.PROTO;
      byte[] bytes = codec == Codec.JSON ? utf8(START) : binary.clone();
      for (int change = 1 + random.nextInt(6); change > 0; change--) {
        bytes[random.nextInt(bytes.length)] = (byte) random.nextInt(256);
      }
      try {
        decode(codec, bytes);
      } catch (ConnectException e) {
        assertThat(e.code()).isEqualTo(ConnectCode.INVALID_ARGUMENT);
      }
    }
    byte[] deep = utf8("[".repeat(100_000));
    assertThatThrownBy(() -> decode(Codec.JSON, deep)).isInstanceOf(ConnectException.class);
  }

  private static StartRequest decode(Codec codec, byte[] bytes) {
    return Connect.decode(codec, bytes, StartRequest.getDefaultInstance());
  }

  private static String json(com.google.protobuf.Message message) {
    return new String(Codec.JSON.encode(message), StandardCharsets.UTF_8);
  }

  private static byte[] read(byte[] bytes) throws IOException {
    return Connect.readEnvelope(new DataInputStream(new ByteArrayInputStream(bytes)));
  }

  private static byte[] envelope(int flags, byte[] body) {
    return ByteBuffer.allocate(5 + body.length)
        .put((byte) flags)
        .putInt(body.length)
        .put(body)
        .array();
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
