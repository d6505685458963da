package dev.space.app;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.e2b.proto.process.ProcessConfig;
import dev.space.e2b.proto.process.StartRequest;
import java.io.IOException;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.KeyStore;
import java.security.SecureRandom;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLHandshakeException;
import javax.net.ssl.TrustManagerFactory;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The listener with TLS, with certificates of the service's own authority and with given ones.
class E2bTlsTest {

  private static final String DOMAIN = "e2b.test";

  @TempDir Path dir;

  private static Certificates.Made make(Path data, String domain) {
    return new Certificates(data, System.getenv(), new SecureRandom()).make(domain);
  }

  private static HttpClient client(LoopbackProxy proxy, Path authority) throws Exception {
    KeyStore trusted = KeyStore.getInstance("PKCS12");
    trusted.load(null, null);
    try (var in = Files.newInputStream(authority)) {
      trusted.setCertificateEntry(
          "ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
    }
    var trust = TrustManagerFactory.getInstance("PKIX");
    trust.init(trusted);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, trust.getTrustManagers(), null);
    return HttpClient.newBuilder()
        .sslContext(context)
        .proxy(ProxySelector.of(proxy.address()))
        .build();
  }

  private static HttpResponse<String> get(HttpClient client, HttpClient.Version version, String url)
      throws Exception {
    return client.send(
        HttpRequest.newBuilder(URI.create(url))
            .timeout(Duration.ofSeconds(20))
            .version(version)
            .build(),
        HttpResponse.BodyHandlers.ofString());
  }

  @Test
  void namesBelowTheDomainLeadToPortsOfSandboxes() throws Exception {
    Path authority = make(dir, DOMAIN).authority();
    try (E2bWire wire =
            E2bWire.start(
                dir, Map.of("e2b.domain", DOMAIN + ":443", "e2b.tls_listen", "127.0.0.1:0"));
        LoopbackProxy proxy = new LoopbackProxy(wire.tlsPort());
        HttpClient client = client(proxy, authority)) {
      for (HttpClient.Version version : HttpClient.Version.values()) {
        if (version.name().equals("HTTP_3")) {
          continue;
        }
        HttpResponse<String> health = get(client, version, "https://api." + DOMAIN + "/health");
        assertThat(health.statusCode()).isEqualTo(204);
        assertThat(health.version()).isEqualTo(version);
      }
      E2bWire.Box box = wire.create("{\"templateID\":\"base\"}");
      String base = "https://8080-" + box.id() + "." + DOMAIN + "/";
      HttpResponse<String> closed = get(client, HttpClient.Version.HTTP_2, base);
      assertThat(closed.statusCode()).isEqualTo(502);
      assertThat(closed.body()).contains("port is not open");
      try (var server =
          wire.stream(
              box,
              "process.Process/Start",
              StartRequest.newBuilder()
                  .setProcess(
                      ProcessConfig.newBuilder()
                          .setCmd("/bin/bash")
                          .addAllArgs(List.of("-l", "-c", "httpd 8080 served")))
                  .build())) {
        assertThat(server.next().end()).isFalse();
        HttpResponse<String> served =
            Awaitility.await()
                .ignoreExceptions()
                .until(
                    () -> get(client, HttpClient.Version.HTTP_2, base),
                    answer -> answer.body().equals("served"));
        assertThat(served.headers().firstValue("access-control-allow-origin")).contains("*");
      }
      HttpResponse<String> gone =
          get(client, HttpClient.Version.HTTP_2, "https://8080-iunknown." + DOMAIN + "/");
      assertThat(gone.statusCode()).isEqualTo(502);
      assertThat(gone.body()).contains("not found");
      HttpResponse<String> envd =
          get(
              client,
              HttpClient.Version.HTTP_2,
              "https://49983-" + box.id() + "." + DOMAIN + "/health");
      assertThat(envd.statusCode()).isEqualTo(204);
      // A name that is not right below the domain is none of the certificate's.
      assertThatThrownBy(
              () -> get(client, HttpClient.Version.HTTP_2, "https://a.b." + DOMAIN + "/"))
          .isInstanceOf(SSLHandshakeException.class);
    }
  }

  @Test
  void certificatesMayBeGiven() throws Exception {
    Path elsewhere = Files.createDirectories(dir.resolve("elsewhere"));
    Certificates.Made made = make(elsewhere, "given.example");
    try (E2bWire wire =
            E2bWire.start(
                dir.resolve("data"),
                Map.of(
                    "e2b.tls_listen", "127.0.0.1:0",
                    "e2b.tls_certificate", made.certificate().toString(),
                    "e2b.tls_key", made.key().toString()));
        LoopbackProxy proxy = new LoopbackProxy(wire.tlsPort());
        HttpClient client = client(proxy, made.authority())) {
      assertThat(
              get(client, HttpClient.Version.HTTP_2, "https://api.given.example/health")
                  .statusCode())
          .isEqualTo(204);
    }
  }

  @Test
  void theAuthorityIsMadeOnceAndKeysAreTheirOwnersAlone() throws Exception {
    Certificates.Made one = make(dir, DOMAIN + ":8443");
    byte[] authority = Files.readAllBytes(one.authority());
    Certificates.Made two = make(dir, "other.example");
    assertThat(two.authority()).hasBinaryContent(authority);
    try (Stream<Path> all = Files.list(dir.resolve("certs"))) {
      assertThat(all.map(path -> path.getFileName().toString()))
          .containsExactlyInAnyOrder(
              "ca.pem",
              "ca-key.pem",
              "e2b.test.pem",
              "e2b.test-key.pem",
              "other.example.pem",
              "other.example-key.pem");
    }
    for (Path key : List.of(one.key(), two.key(), dir.resolve("certs/ca-key.pem"))) {
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(key)))
          .isEqualTo("rw-------");
    }
    var x509 = CertificateFactory.getInstance("X.509");
    X509Certificate ca;
    X509Certificate server;
    try (var in = Files.newInputStream(two.authority());
        var more = Files.newInputStream(two.certificate())) {
      ca = (X509Certificate) x509.generateCertificate(in);
      server = (X509Certificate) x509.generateCertificate(more);
    }
    server.verify(ca.getPublicKey());
    assertThat(ca.getBasicConstraints()).isZero();
    assertThat(server.getBasicConstraints()).isEqualTo(-1);
    assertThat(server.getSubjectAlternativeNames().stream().<Object>map(name -> name.get(1)))
        .containsExactlyInAnyOrder("other.example", "*.other.example");
  }

  @Test
  void whatCannotBeUsedIsNamed() throws IOException {
    assertThatThrownBy(() -> make(dir, "no domain"))
        .isInstanceOfSatisfying(
            SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_REQUEST));
    Map<String, String> listen = Map.of("e2b.domain", DOMAIN, "e2b.tls_listen", "127.0.0.1:0");
    assertThatThrownBy(() -> E2bWire.start(dir, listen))
        .hasMessageContaining("e2b.test.pem")
        .satisfies(e -> assertThat(remedy(e)).contains("space e2b certs"));
    Certificates.Made made = make(dir, DOMAIN);
    String key = Files.readString(made.key());
    Files.writeString(made.key(), key.replace("PRIVATE KEY", "EC PRIVATE KEY"));
    assertThatThrownBy(() -> E2bWire.start(dir, listen))
        .satisfies(e -> assertThat(remedy(e)).contains("openssl pkcs8 -topk8"));
    assertThatThrownBy(() -> E2bWire.start(dir, Map.of("e2b.tls_listen", "127.0.0.1:0")))
        .hasMessageContaining("it needs e2b.domain");
    assertThatThrownBy(
            () ->
                E2bWire.start(
                    dir, Map.of("e2b.tls_listen", "127.0.0.1:0", "e2b.tls_key", "/k.pem")))
        .hasMessageContaining("go together");
  }

  private static String remedy(Throwable e) {
    return e instanceof SpaceException told ? told.problem().remedy().orElse("") : "";
  }
}
