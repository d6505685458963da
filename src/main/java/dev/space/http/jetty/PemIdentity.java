package dev.space.http.jetty;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.http.Tls;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Reads a certificate and its key from PEM files into what Java's TLS takes.
final class PemIdentity {

  private static final Pattern KEY =
      Pattern.compile("-----BEGIN ([A-Z ]*)PRIVATE KEY-----([^-]*)-----END");

  /// The store never leaves the process, so its password protects nothing.
  static final String PASSWORD = "in-memory";

  private PemIdentity() {}

  /// @throws SpaceException PREREQUISITE_MISSING naming the file that can't be used
  static KeyStore load(Tls tls) {
    Certificate[] chain = chain(tls.certificate());
    PrivateKey key = key(tls.key());
    try {
      KeyStore store = KeyStore.getInstance("PKCS12");
      store.load(null, null);
      store.setKeyEntry("server", key, PASSWORD.toCharArray(), chain);
      return store;
    } catch (GeneralSecurityException | IOException e) {
      throw unusable(tls.certificate(), String.valueOf(e.getMessage()), Optional.empty());
    }
  }

  private static Certificate[] chain(Path file) {
    try {
      Collection<? extends Certificate> all =
          CertificateFactory.getInstance("X.509")
              .generateCertificates(new ByteArrayInputStream(read(file)));
      if (all.isEmpty()) {
        throw unusable(file, "it holds no certificate", Optional.empty());
      }
      if (all.iterator().next() instanceof X509Certificate first) {
        first.checkValidity();
      }
      return all.toArray(Certificate[]::new);
    } catch (GeneralSecurityException e) {
      throw unusable(file, String.valueOf(e.getMessage()), Optional.empty());
    }
  }

  private static PrivateKey key(Path file) {
    Matcher pem = KEY.matcher(new String(read(file), StandardCharsets.US_ASCII));
    if (!pem.find()) {
      throw unusable(file, "it holds no private key", Optional.empty());
    }
    if (!pem.group(1).isEmpty()) {
      throw unusable(
          file,
          "its key is in the form '" + pem.group(1).strip() + "', not PKCS #8 without a password",
          Optional.of("Convert it: openssl pkcs8 -topk8 -nodes -in " + file + " -out NEW-FILE"));
    }
    byte[] bytes;
    try {
      bytes = Base64.getMimeDecoder().decode(pem.group(2));
    } catch (IllegalArgumentException e) {
      throw unusable(file, "its key is not valid base64", Optional.empty());
    }
    for (String algorithm : List.of("EC", "RSA", "EdDSA")) {
      try {
        return KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(bytes));
      } catch (InvalidKeySpecException _) {
        // Of another kind, then.
      } catch (GeneralSecurityException e) {
        throw unusable(file, String.valueOf(e.getMessage()), Optional.empty());
      }
    }
    throw unusable(file, "its key is neither EC nor RSA nor EdDSA", Optional.empty());
  }

  private static byte[] read(Path file) {
    try {
      return Files.readAllBytes(file);
    } catch (IOException e) {
      throw unusable(
          file,
          e.toString(),
          Optional.of("Make one with 'space e2b certs', or name another in the configuration."));
    }
  }

  private static SpaceException unusable(Path file, String why, Optional<String> remedy) {
    return Problem.of(ErrorCode.PREREQUISITE_MISSING, "The TLS file " + file + " can't be used")
        .because(why)
        .remedy(remedy.orElse("Replace it, or make one with 'space e2b certs'."))
        .toException();
  }
}
