package dev.space.core.sandbox;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SandboxLimitsTest {

  private static CreateSandbox request(
      Optional<Integer> vcpus,
      Optional<Integer> memory,
      Optional<Integer> disk,
      Map<String, String> env,
      Map<String, String> metadata,
      Optional<Duration> timeout) {
    return new CreateSandbox(
        new CreateSandbox.Source.FromTemplate(Daemon.BASE),
        vcpus,
        memory,
        disk,
        env,
        metadata,
        timeout,
        OnTimeout.DELETE,
        timeout,
        false);
  }

  private static CreateSandbox with(Map<String, String> env, Map<String, String> metadata) {
    return request(
        Optional.empty(), Optional.empty(), Optional.empty(), env, metadata, Optional.empty());
  }

  private static void refused(ThrowingCallable call, String... words) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(
            SpaceException.class,
            e -> {
              assertThat(e.code()).isEqualTo(ErrorCode.INVALID_REQUEST);
              assertThat(e.problem().detail()).contains(words);
            });
  }

  @ParameterizedTest
  @CsvSource({
    "vcpus, 0",
    "vcpus, 33",
    "memory_mib, 127",
    "memory_mib, 1048577",
    "disk_mib, 63",
    "disk_mib, 1048577",
    "vcpus, -2147483648",
    "memory_mib, 2147483647"
  })
  void absurd_sizes_are_refused_by_name(String field, int value) {
    refused(
        () ->
            SandboxLimits.check(
                request(
                    field.equals("vcpus") ? Optional.of(value) : Optional.empty(),
                    field.equals("memory_mib") ? Optional.of(value) : Optional.empty(),
                    field.equals("disk_mib") ? Optional.of(value) : Optional.empty(),
                    Map.of(),
                    Map.of(),
                    Optional.empty())),
        field,
        String.valueOf(value));
  }

  @Test
  void the_limits_themselves_are_allowed() {
    assertThatCode(
            () -> {
              SandboxLimits.check(
                  request(
                      Optional.of(32),
                      Optional.of(128),
                      Optional.of(64),
                      Map.of("A", "x".repeat((64 << 10) - 3)),
                      Map.of("a", "x".repeat((16 << 10) - 1)),
                      Optional.of(Duration.ofDays(30))));
              SandboxLimits.copies(1);
              SandboxLimits.copies(100);
              SandboxLimits.snapshotName(Optional.of("x".repeat(128)));
            })
        .doesNotThrowAnyException();
  }

  @Test
  void environments_over_the_limit_or_with_names_that_are_none_are_refused() {
    refused(
        () -> SandboxLimits.check(with(Map.of("A", "x".repeat((64 << 10) - 2)), Map.of())),
        "env",
        "65536");
    for (String name : new String[] {"", "1A", "A B", "A=B", "A\0", "Ä"}) {
      refused(() -> SandboxLimits.check(with(Map.of(name, "x"), Map.of())), "env");
    }
    refused(() -> SandboxLimits.check(with(Map.of("A", "x\0y"), Map.of())), "env.A", "NUL");
  }

  @Test
  void metadata_over_the_limit_is_refused() {
    Map<String, String> many = new HashMap<>();
    for (int i = 0; i < 65; i++) {
      many.put("k" + i, "");
    }
    refused(() -> SandboxLimits.check(with(Map.of(), many)), "metadata", "64", "65");
    refused(
        () -> SandboxLimits.check(with(Map.of(), Map.of("a", "é".repeat(8 << 10)))),
        "metadata",
        "16384");
    refused(() -> SandboxLimits.check(with(Map.of(), Map.of("", "x"))), "metadata");
  }

  @ParameterizedTest
  @CsvSource({"PT0.999S", "PT0S", "-PT5S", "PT720H0.001S", "PT100000000H"})
  void times_out_of_range_are_refused(Duration time) {
    refused(
        () ->
            SandboxLimits.check(
                request(
                    Optional.empty(),
                    Optional.empty(),
                    Optional.empty(),
                    Map.of(),
                    Map.of(),
                    Optional.of(time))),
        "timeout",
        "2592000");
  }

  @Test
  void counts_and_names_out_of_range_are_refused() {
    refused(() -> SandboxLimits.copies(0), "count", "100");
    refused(() -> SandboxLimits.copies(101), "count", "100");
    for (String name : new String[] {"", " ", "x".repeat(129), "a\nb"}) {
      refused(() -> SandboxLimits.snapshotName(Optional.of(name)), "name");
    }
  }
}
