package dev.space.core.access;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static java.nio.charset.StandardCharsets.UTF_8;

import dev.space.core.Ids;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.store.Store;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.time.InstantSource;
import java.time.temporal.ChronoUnit;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.regex.Pattern;

/// API keys. Only their SHA-256 is stored: with 160 random bits there is nothing to guess, so no
/// slow hash is needed.
///
/// Keys are `e2b_` and 40 lower-case hex digits, because E2B's SDKs refuse any other form before
/// they make a request (e2b-wire.md, `E2B_VALIDATE_API_KEY`).
public final class ApiKeys {

  private static final Pattern FORM = Pattern.compile("e2b_[0-9a-f]{40}");
  private static final int SECRET_BYTES = 20;
  private static final int NAME_MAX = 128;
  private static final int CACHED_MAX = 10_000;

  private final Store store;
  private final Ids ids;
  private final SecureRandom random;
  private final InstantSource clock;
  private final ConcurrentHashMap<String, StoredKey> known = new ConcurrentHashMap<>();

  /// Tells a lookup that a key was revoked while it was going on.
  private final AtomicLong revocations = new AtomicLong();

  public ApiKeys(Store store, Ids ids, SecureRandom random, InstantSource clock) {
    this.store = store;
    this.ids = ids;
    this.random = random;
    this.clock = clock;
  }

  /// A new key.
  ///
  /// @param secret what its holder presents; never to be seen again
  public record Created(StoredKey key, String secret) {
    @Override
    public String toString() {
      return "Created[" + key.id() + "]";
    }
  }

  /// Makes a key.
  ///
  /// @throws SpaceException INVALID_REQUEST when the name is empty or longer than 128 characters
  public Created create(String project, String name) {
    if (name.isBlank() || name.length() > NAME_MAX) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "name must have 1 to " + NAME_MAX + " characters")
          .remedy("Give the key a shorter name, one that is not blank.")
          .toException();
    }
    Created made = make(project, name);
    insert(made.key());
    return made;
  }

  private Created make(String project, String name) {
    byte[] bytes = new byte[SECRET_BYTES];
    random.nextBytes(bytes);
    String secret = "e2b_" + HexFormat.of().formatHex(bytes);
    StoredKey key =
        new StoredKey(
            ids.next(Ids.Kind.KEY),
            project,
            name,
            "admin",
            hash(secret),
            clock.instant().truncatedTo(ChronoUnit.MILLIS),
            Optional.empty());
    return new Created(key, secret);
  }

  private void insert(StoredKey key) {
    store.transact(
        tx -> {
          tx.keys().insert(key);
          return true;
        });
  }

  /// Makes the first key of all, for the default project; empty when there are keys already.
  ///
  /// @param keep puts the secret where its owner finds it. That comes first: what fails or dies
  ///   after it leaves a secret that opens nothing, and the next call makes another; a key whose
  ///   secret nobody has would keep everybody out for ever
  public Optional<Created> bootstrap(Consumer<Created> keep) {
    if (store.<Boolean>read(tx -> tx.keys().any())) {
      return Optional.empty();
    }
    Created first = make(Caller.DEFAULT_PROJECT, "bootstrap");
    keep.accept(first);
    insert(first.key());
    return Optional.of(first);
  }

  /// Who presents this key.
  ///
  /// @throws SpaceException UNAUTHENTICATED; the same for a malformed, unknown or revoked key
  public Caller authenticate(String presentedKey, String requestId) {
    if (FORM.matcher(presentedKey).matches()) {
      String hash = hash(presentedKey);
      long before = revocations.get();
      StoredKey key = known.get(hash);
      if (key == null) {
        key = store.<Optional<StoredKey>>read(tx -> tx.keys().byHash(hash)).orElse(null);
      }
      // The lookup is by hash, whose bytes a caller can't choose; the comparison is constant in
      // time.
      if (key != null
          && key.revokedAt().isEmpty()
          && MessageDigest.isEqual(key.hash().getBytes(US_ASCII), hash.getBytes(US_ASCII))) {
        if (known.size() < CACHED_MAX) {
          known.put(hash, key);
          if (revocations.get() != before) {
            known.remove(hash); // it may be the one: the next call looks it up again
          }
        }
        return new Caller(key.project(), key.id(), requestId);
      }
    }
    throw Problem.of(ErrorCode.UNAUTHENTICATED, "the API key is not one of this service")
        .remedy("Send a valid key; the first one lies in the file api-key of the data directory.")
        .toException();
  }

  /// The project's keys, oldest first, revoked ones too.
  public List<StoredKey> list(Caller caller) {
    return store.read(tx -> tx.keys().list(caller.project()));
  }

  /// Makes a key worthless from now on.
  ///
  /// @throws SpaceException NOT_FOUND
  public void revoke(Caller caller, String keyId) {
    boolean revoked =
        store.<Boolean>transact(
            tx ->
                tx.keys()
                    .revoke(
                        caller.project(), keyId, clock.instant().truncatedTo(ChronoUnit.MILLIS)));
    revocations.incrementAndGet(); // first: what is cached after the sweep sees it
    known.values().removeIf(key -> key.id().equals(keyId));
    if (!revoked) {
      throw Problem.of(ErrorCode.NOT_FOUND, "no API key in use has this id")
          .remedy("List the keys there are; a key that was revoked can't be revoked again.")
          .toException();
    }
  }

  private static String hash(String key) {
    try {
      byte[] digest = MessageDigest.getInstance("SHA-256").digest(key.getBytes(UTF_8));
      return HexFormat.of().formatHex(digest);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    }
  }
}
