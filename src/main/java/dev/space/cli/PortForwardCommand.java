package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.wire.Endpoint;
import dev.space.wire.WireClient;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

@Command(
    name = "port-forward",
    description = {
      "Make a server in a sandbox reachable on a local port, until interrupted.",
      "Carries the bytes of any TCP protocol. The server may listen on 127.0.0.1 alone."
    },
    footerHeading = "%nExamples:%n",
    footer = {
      "  space port-forward ID 8080        127.0.0.1:8080 is port 8080 of the sandbox",
      "  space port-forward ID 8080:80     127.0.0.1:8080 is its port 80",
      "  space port-forward ID 0:5432      a free local port is its port 5432"
    })
final class PortForwardCommand implements Callable<Integer> {

  private final Root root;

  @Option(
      names = "--address",
      defaultValue = "127.0.0.1",
      paramLabel = "ADDRESS",
      description = "Local address to listen on (default 127.0.0.1).")
  private InetAddress address = InetAddress.getLoopbackAddress();

  @Parameters(index = "0", paramLabel = "ID", description = "The sandbox.")
  private String id = "";

  @Parameters(index = "1", paramLabel = "LOCAL[:PORT]", description = "Local and sandbox port.")
  private String ports = "";

  PortForwardCommand(Root root) {
    this.root = root;
  }

  @Override
  public Integer call() {
    String[] parts = ports.split(":", -1);
    int local = parts.length == 2 && parts[0].equals("0") ? 0 : port(parts[0]);
    int remote = port(parts[parts.length == 2 ? 1 : 0]);
    root.api().get("/v1/sandboxes/" + Api.part(id));
    String prefix = "/v1/sandboxes/" + Api.part(id) + "/ports/" + remote;
    Location location = root.location();
    WireClient service = new WireClient(Endpoint.ofUrl(location.dataUrl()));
    try (ServerSocket listener = new ServerSocket()) {
      listener.bind(new InetSocketAddress(address, local));
      root.surroundings()
          .err()
          .println(
              "space: "
                  + new Endpoint.Tcp(address.getHostAddress(), listener.getLocalPort()).authority()
                  + " is port "
                  + remote
                  + " of "
                  + id);
      while (true) {
        Socket client = listener.accept();
        ForwardedConnection connection =
            new ForwardedConnection(
                client,
                service,
                prefix,
                location.key(),
                problem -> root.surroundings().err().println("space: " + problem.oneLine()));
        Thread.ofVirtual().name("forward").start(connection::carry);
      }
    } catch (IOException e) {
      throw Problem.of(ErrorCode.CONFLICT, "Port " + local + " can't be listened on")
          .because(e)
          .remedy("Choose another: space port-forward ID OTHER:" + remote)
          .toException(e);
    }
  }

  private static int port(String text) {
    SpaceException bad =
        Problem.of(ErrorCode.INVALID_REQUEST, "'" + text + "' is no port")
            .remedy("Write 8080, or 8080:80 for local port 8080 to port 80 of the sandbox.")
            .toException();
    if (!text.matches("\\d{1,5}")) {
      throw bad;
    }
    int port = Integer.parseInt(text);
    if (port < 1 || port > 65_535) {
      throw bad;
    }
    return port;
  }
}
