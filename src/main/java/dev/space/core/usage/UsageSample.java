package dev.space.core.usage;

import dev.space.core.guest.GuestStats;
import java.time.Instant;
import java.util.Optional;

/// What a sandbox used at one time, by its guest's own word.
///
/// @param cpuPercent of all its CPUs since the sample before, 0 to 100; empty for the first
/// @param stats the figures it comes from
public record UsageSample(Instant at, Optional<Double> cpuPercent, GuestStats stats) {

  /// The sample that follows another. A counter that went back, as after a restore, counts from
  /// there.
  static UsageSample after(Optional<UsageSample> before, Instant at, GuestStats stats) {
    Optional<Double> cpu =
        before
            .map(UsageSample::stats)
            .filter(
                last ->
                    stats.cpuTotalMillis() > last.cpuTotalMillis()
                        && stats.cpuBusyMillis() >= last.cpuBusyMillis())
            .map(
                last ->
                    100.0
                        * (stats.cpuBusyMillis() - last.cpuBusyMillis())
                        / (stats.cpuTotalMillis() - last.cpuTotalMillis()))
            .map(percent -> Math.min(100, percent));
    return new UsageSample(at, cpu, stats);
  }
}
