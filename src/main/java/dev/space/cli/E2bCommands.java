package dev.space.cli;

import dev.space.app.Certificates;
import dev.space.app.SpaceConfig;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.util.Map;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

@Command(
    name = "e2b",
    description = "What E2B's programs need of the service.",
    footerHeading = "%nExamples:%n",
    footer = {"  space e2b certs --domain e2b.test"})
final class E2bCommands extends Group {

  private final Root root;

  E2bCommands(Root root) {
    this.root = root;
  }

  @Command(
      name = "certs",
      description = {
        "Make a TLS certificate for a domain and all names right below it, signed by an",
        "authority of the service's own that is made when there is none, in DATA_DIR/certs."
      },
      footerHeading = "%nExamples:%n",
      footer = {
        "  space e2b certs --domain e2b.test",
        "  space serve --set e2b.domain=e2b.test:8443 --set e2b.tls_listen=127.0.0.1:8443"
      })
  int certs(
      @Option(
              names = "--domain",
              paramLabel = "DOMAIN",
              description = "The domain; e2b.domain of the configuration when absent.")
          Optional<String> domain) {
    Logging.quiet();
    SpaceConfig config = root.config(Optional.empty(), Map.of());
    String chosen =
        domain
            .or(() -> config.e2b().domain())
            .orElseThrow(
                () ->
                    Problem.of(ErrorCode.INVALID_REQUEST, "There is no domain to certify")
                        .remedy("Give --domain, such as e2b.test, or set e2b.domain.")
                        .toException());
    Certificates.Made made = root.assembly().certify(config, chosen);
    root.printer()
        .result(
            Json.object()
                .put("authority", made.authority().toString())
                .put("certificate", made.certificate().toString())
                .put("key", made.key().toString()),
            """
            Authority (clients have to trust it): %1$s
            Certificate: %2$s
            Key:         %3$s
            Trust it: NODE_EXTRA_CA_CERTS=%1$s SSL_CERT_FILE=%1$s, or copy it to
            /usr/local/share/ca-certificates/space.crt and run update-ca-certificates."""
                .formatted(made.authority(), made.certificate(), made.key()));
    return ExitStatus.OK;
  }
}
