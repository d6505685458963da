package dev.space.guest;

import com.google.protobuf.ByteString;
import dev.space.core.guest.Guest;
import dev.space.guest.proto.AdoptRequest;
import java.security.SecureRandom;
import java.time.Instant;
import java.time.InstantSource;

/// Makes adoption requests: identity, the host's time, fresh entropy, environment.
record Adoptions(InstantSource clock, SecureRandom random) {

  private static final int ENTROPY_BYTES = 64;

  /// To be made right before it is sent, to a guest that was heard: a time that waited is old.
  AdoptRequest request(long generation, Guest.Adoption adoption) {
    byte[] entropy = new byte[ENTROPY_BYTES];
    random.nextBytes(entropy);
    Instant now = clock.instant();
    return AdoptRequest.newBuilder()
        .setGeneration(generation)
        .setNewIdentity(adoption.newIdentity())
        .setSandboxId(adoption.sandboxId())
        .setHostname(adoption.hostname())
        .setUnixNanos(
            Math.addExact(Math.multiplyExact(now.getEpochSecond(), 1_000_000_000L), now.getNano()))
        .setEntropy(ByteString.copyFrom(entropy))
        .putAllEnv(adoption.env())
        .setDefaultUser(adoption.defaultUser().orElse(""))
        .setDefaultWorkdir(adoption.defaultWorkdir().orElse(""))
        .build();
  }
}
