package dev.space.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.wire.WebSocket.Message;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(20)
class WebSocketTest {

  /// The example of RFC 6455, section 1.3.
  @Test
  void handshakeIsThatOfTheStandard() {
    assertThat(WebSocket.accept("dGhlIHNhbXBsZSBub25jZQ=="))
        .isEqualTo("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 125, 126, 65_535, 65_536, 300_000})
  void messagesOfEveryLengthFormArriveUnchanged(int length) throws Exception {
    byte[] bytes = new byte[length];
    new Random(length).nextBytes(bytes);
    try (ScriptedServer server =
            ScriptedServer.tcp(
                peer -> {
                  shakeHands(peer);
                  Frame frame = readFrame(peer);
                  peer.write(frame(0x80 | frame.opcode(), frame.payload()));
                  peer.awaitEnd();
                });
        WebSocket socket = server.client().open("/ws", Headers.NONE, Optional.empty())) {
      socket.sendBinary(bytes, 0, length);
      assertThat(socket.receive())
          .hasValueSatisfying(
              m ->
                  assertThat(m)
                      .isInstanceOfSatisfying(
                          Message.Binary.class, b -> assertThat(b.bytes()).isEqualTo(bytes)));
    }
  }

  @Test
  void joinsFragmentsAndAnswersPingsBetweenThem() throws Exception {
    CompletableFuture<Frame> pong = new CompletableFuture<>();
    try (ScriptedServer server =
            ScriptedServer.tcp(
                peer -> {
                  shakeHands(peer);
                  peer.write(frame(0x01, "hal".getBytes(StandardCharsets.UTF_8)));
                  peer.write(frame(0x89, "p".getBytes(StandardCharsets.UTF_8)));
                  peer.write(frame(0x80, "lo".getBytes(StandardCharsets.UTF_8)));
                  pong.complete(readFrame(peer));
                  peer.write(frame(0x88, new byte[] {3, (byte) 0xe8, 'o', 'k'}));
                  peer.awaitEnd();
                });
        WebSocket socket = server.client().open("/ws", Headers.NONE, Optional.empty())) {
      assertThat(socket.receive()).contains(new Message.Text("hallo"));
      assertThat(socket.receive()).contains(new Message.Closed(1000, "ok"));
      assertThat(pong.get().opcode()).isEqualTo(10);
      assertThat(pong.get().payload()).asString().isEqualTo("p");
    }
  }

  @Test
  void refusalCarriesStatusAndBody() throws Exception {
    try (ScriptedServer server =
        ScriptedServer.tcp(
            peer -> {
              peer.head();
              peer.write("HTTP/1.1 401 No\r\nContent-Length: 4\r\n\r\nwhy?");
            })) {
      assertThatThrownBy(() -> server.client().open("/ws", Headers.NONE, Optional.empty()))
          .isInstanceOfSatisfying(
              RefusedException.class,
              e -> {
                assertThat(e.status()).isEqualTo(401);
                assertThat(e.body()).isEqualTo("why?");
              });
    }
  }

  @Test
  void absurdLengthsAreRefusedBeforeTheyAreAllocated() throws Exception {
    try (ScriptedServer server =
            ScriptedServer.tcp(
                peer -> {
                  shakeHands(peer);
                  peer.write(new byte[] {(byte) 0x82, 127, 127, 0, 0, 0, 0, 0, 0, 0});
                  peer.awaitEnd();
                });
        WebSocket socket = server.client().open("/ws", Headers.NONE, Optional.empty())) {
      assertThatThrownBy(socket::receive)
          .isInstanceOfSatisfying(
              WireException.class,
              e -> assertThat(e.fault()).isEqualTo(WireException.Fault.MALFORMED));
    }
  }

  private record Frame(int opcode, byte[] payload) {}

  private static void shakeHands(ScriptedServer.Peer peer) throws IOException {
    String head = peer.head();
    String key = head.replaceAll("(?s).*Sec-WebSocket-Key: ([^\r]*).*", "$1");
    peer.write(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Accept: "
            + WebSocket.accept(key)
            + "\r\n\r\n");
  }

  private static byte[] frame(int first, byte[] payload) {
    ByteArrayOutputStream frame = new ByteArrayOutputStream();
    frame.write(first);
    if (payload.length < 126) {
      frame.write(payload.length);
    } else if (payload.length < 65_536) {
      frame.write(126);
      frame.write(payload.length >> 8);
      frame.write(payload.length);
    } else {
      frame.write(127);
      for (int shift = 56; shift >= 0; shift -= 8) {
        frame.write((int) ((long) payload.length >> shift));
      }
    }
    frame.writeBytes(payload);
    return frame.toByteArray();
  }

  private static Frame readFrame(ScriptedServer.Peer peer) throws IOException {
    byte[] head = peer.read(2);
    assertThat(head[1] & 0x80).as("a client masks").isEqualTo(0x80);
    long length = head[1] & 127;
    int more = length == 126 ? 2 : length == 127 ? 8 : 0;
    if (more > 0) {
      length = 0;
      for (byte b : peer.read(more)) {
        length = length << 8 | (b & 0xff);
      }
    }
    byte[] mask = peer.read(4);
    byte[] payload = peer.read((int) length);
    for (int i = 0; i < payload.length; i++) {
      payload[i] ^= mask[i & 3];
    }
    return new Frame(head[0] & 15, payload);
  }
}
