package dev.space.app;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.host.Command;
import dev.space.host.PrivateFile;
import dev.space.host.Processes;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.Key;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.SecureRandom;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;

/// The service's own certificate authority and wildcard certificates, in `certs/` of the data
/// directory. The authority is made once and kept, so that clients trust it once; the JDK's
/// `keytool` signs.
public final class Certificates {

  private static final Duration STEP = Duration.ofMinutes(1);
  private static final String CA = "ca";
  private static final String SERVER = "server";
  private static final String PASSWORD = "SPACE_CERTS_PASSWORD";
  private static final String CA_DAYS = "3650";

  /// What clients accept at most.
  private static final String SERVER_DAYS = "397";

  private static final Base64.Encoder PEM =
      Base64.getMimeEncoder(64, "\n".getBytes(StandardCharsets.US_ASCII));

  private final Path folder;
  private final Processes processes;
  private final SecureRandom random;

  /// @param authority what clients have to trust
  /// @param certificate for the domain and all names right below it, followed by the authority
  /// @param key the certificate's
  public record Made(Path authority, Path certificate, Path key) {}

  /// @param environment of this process
  public Certificates(Path dataDir, Map<String, String> environment, SecureRandom random) {
    this.folder = folder(dataDir);
    this.processes = new Processes(environment);
    this.random = random;
  }

  private static Path folder(Path dataDir) {
    return dataDir.resolve("certs");
  }

  /// A domain without its port.
  ///
  /// @throws SpaceException INVALID_REQUEST when it is no domain name
  static String name(String domain) {
    String name = domain.replaceFirst(":\\d{1,5}$", "").toLowerCase(Locale.ROOT);
    if (name.length() > 200
        || !name.matches("([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)*[a-z][a-z0-9-]{0,61}[a-z0-9]")) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "'" + domain + "' is no domain name")
          .remedy("Give a name such as e2b.test or sandbox.example:8443.")
          .toException();
    }
    return name;
  }

  static Path certificate(Path dataDir, String name) {
    return folder(dataDir).resolve(name + ".pem");
  }

  static Path key(Path dataDir, String name) {
    return folder(dataDir).resolve(name + "-key.pem");
  }

  /// Makes a certificate for `domain` and `*.domain`, and the authority when there is none yet.
  ///
  /// @throws SpaceException INVALID_REQUEST when the domain is none; PREREQUISITE_MISSING when the
  ///   JDK's keytool doesn't do it or the files can't be written
  public Made make(String domain) {
    String name = name(domain);
    try {
      Files.createDirectories(folder);
      Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwx------"));
      Path work = Files.createTempDirectory(folder, "make-");
      try {
        return make(name, work);
      } finally {
        remove(work);
      }
    } catch (IOException | UncheckedIOException e) {
      throw Problem.of(ErrorCode.PREREQUISITE_MISSING, "Certificates can't be written to " + folder)
          .because(e.toString())
          .remedy("Give the service the right to write there, or choose another --data-dir.")
          .toException(e);
    } catch (GeneralSecurityException e) {
      throw failed(e.toString());
    }
  }

  private Made make(String name, Path work) throws IOException, GeneralSecurityException {
    byte[] secret = new byte[24];
    random.nextBytes(secret);
    String password = HexFormat.of().formatHex(secret);
    Path authority = folder.resolve("ca.pem");
    Path authorityKey = folder.resolve("ca-key.pem");
    Path store = work.resolve(CA);
    if (Files.exists(authority) && Files.exists(authorityKey)) {
      restore(store, password, authority, authorityKey);
    } else {
      pair(work, CA, password, "CN=SPACE local authority", CA_DAYS);
      KeyStore made = open(store, password);
      PrivateFile.write(authorityKey, key(made, CA, password));
      Files.writeString(authority, pem("CERTIFICATE", made.getCertificate(CA).getEncoded()));
    }
    pair(work, SERVER, password, "CN=" + name, SERVER_DAYS);
    keytool(work, password, "-certreq", "-alias", SERVER, "-keystore", SERVER, "-file", "request");
    keytool(
        work,
        password,
        "-gencert",
        "-alias",
        CA,
        "-keystore",
        CA,
        "-infile",
        "request",
        "-outfile",
        "signed",
        "-validity",
        SERVER_DAYS,
        "-ext",
        "san=dns:" + name + ",dns:*." + name,
        "-ext",
        "ku:critical=digitalSignature",
        "-ext",
        "eku=serverAuth");
    Path certificate = folder.resolve(name + ".pem");
    Path key = folder.resolve(name + "-key.pem");
    PrivateFile.write(key, key(open(work.resolve(SERVER), password), SERVER, password));
    Files.writeString(
        certificate,
        pem("CERTIFICATE", read(work.resolve("signed")).getEncoded())
            + pem("CERTIFICATE", read(authority).getEncoded()));
    return new Made(authority, certificate, key);
  }

  private void pair(Path work, String alias, String password, String subject, String days) {
    List<String> arguments = new ArrayList<>();
    arguments.addAll(List.of("-genkeypair", "-alias", alias, "-keystore", alias));
    arguments.addAll(List.of("-storetype", "PKCS12", "-keyalg", "EC", "-groupname", "secp256r1"));
    arguments.addAll(List.of("-dname", subject, "-validity", days));
    if (alias.equals(CA)) {
      arguments.addAll(List.of("-ext", "bc:critical=ca:true,pathlen:0"));
      arguments.addAll(List.of("-ext", "ku:critical=keyCertSign,cRLSign"));
    }
    keytool(work, password, arguments.toArray(String[]::new));
  }

  private void keytool(Path work, String password, String... arguments) {
    List<String> argv = new ArrayList<>();
    argv.add(Path.of(System.getProperty("java.home"), "bin", "keytool").toString());
    argv.addAll(List.of(arguments));
    argv.addAll(List.of("-storepass:env", PASSWORD));
    Processes.Finished done =
        processes.run(Command.of(STEP, argv).env(Map.of(PASSWORD, password)).in(work));
    if (!done.ok()) {
      throw failed(done.said());
    }
  }

  private static SpaceException failed(String why) {
    return Problem.of(ErrorCode.PREREQUISITE_MISSING, "The JDK's keytool makes no certificate")
        .because(why)
        .remedy(
            "Run SPACE with a whole JDK, or give a certificate: e2b.tls_certificate, e2b.tls_key.")
        .toException();
  }

  private static void restore(Path store, String password, Path certificate, Path key)
      throws IOException, GeneralSecurityException {
    String body = Files.readString(key).replaceAll("-----[^-]*-----", "");
    Key read =
        KeyFactory.getInstance("EC")
            .generatePrivate(new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(body)));
    KeyStore made = KeyStore.getInstance("PKCS12");
    made.load(null, null);
    made.setKeyEntry(CA, read, password.toCharArray(), new Certificate[] {read(certificate)});
    try (OutputStream out = Files.newOutputStream(store)) {
      made.store(out, password.toCharArray());
    }
  }

  private static KeyStore open(Path store, String password)
      throws IOException, GeneralSecurityException {
    KeyStore read = KeyStore.getInstance("PKCS12");
    try (InputStream in = Files.newInputStream(store)) {
      read.load(in, password.toCharArray());
    }
    return read;
  }

  private static byte[] key(KeyStore store, String alias, String password)
      throws GeneralSecurityException {
    Key key = store.getKey(alias, password.toCharArray());
    return pem("PRIVATE KEY", key.getEncoded()).getBytes(StandardCharsets.US_ASCII);
  }

  private static Certificate read(Path file) throws IOException, GeneralSecurityException {
    return CertificateFactory.getInstance("X.509")
        .generateCertificate(new ByteArrayInputStream(Files.readAllBytes(file)));
  }

  private static String pem(String kind, byte[] bytes) {
    return "-----BEGIN "
        + kind
        + "-----\n"
        + PEM.encodeToString(bytes)
        + "\n-----END "
        + kind
        + "-----\n";
  }

  private static void remove(Path folder) throws IOException {
    try (Stream<Path> all = Files.walk(folder)) {
      for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
        Files.deleteIfExists(path);
      }
    }
  }
}
