package dev.space.core.operation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.space.core.error.SpaceException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(30)
class LanesTest {

  private final Lanes lanes = new Lanes();

  private static void wait(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new IllegalStateException("interrupted", e);
    }
  }

  @Test
  void jobs_of_one_key_run_in_order_and_other_keys_beside_them() {
    List<Integer> order = new CopyOnWriteArrayList<>();
    CountDownLatch gate = new CountDownLatch(1);
    lanes.submit("a", job -> wait(gate));
    for (int i = 0; i < 100; i++) {
      int n = i;
      lanes.submit("a", job -> order.add(n));
    }
    Lanes.Job other = lanes.submit("b", job -> {});

    assertThat(other.awaitEnd(Duration.ofSeconds(10))).isTrue();
    assertThat(order).isEmpty();
    gate.countDown();
    assertThat(lanes.awaitIdle(Duration.ofSeconds(10))).isTrue();
    assertThat(order).isEqualTo(IntStream.range(0, 100).boxed().toList());
    assertThat(lanes.busy()).isZero();
  }

  @Test
  void a_job_that_throws_does_not_stop_its_lane() {
    AtomicBoolean ran = new AtomicBoolean();
    lanes.submit(
        "a",
        job -> {
          throw new IllegalStateException("on purpose");
        });
    lanes.submit("a", job -> ran.set(true));
    assertThat(lanes.awaitIdle(Duration.ofSeconds(10))).isTrue();
    assertThat(ran).isTrue();
  }

  @Test
  void a_preemption_interrupts_the_call_and_drops_what_waits() {
    CountDownLatch inCall = new CountDownLatch(1);
    AtomicBoolean interrupted = new AtomicBoolean();
    AtomicBoolean flagAfter = new AtomicBoolean(true);
    AtomicBoolean ran = new AtomicBoolean();
    AtomicReference<Throwable> second = new AtomicReference<>(new Throwable());
    Lanes.Job running =
        lanes.submit(
            "a",
            job -> {
              job.call(
                  () -> {
                    inCall.countDown();
                    try {
                      new CountDownLatch(1).await();
                    } catch (InterruptedException e) {
                      interrupted.set(true);
                      Thread.currentThread().interrupt();
                    }
                    return true;
                  });
              flagAfter.set(Thread.currentThread().isInterrupted());
              try {
                job.call(() -> true);
              } catch (SpaceException e) {
                second.set(e);
              }
            });
    Lanes.Job dropped = lanes.submit("a", job -> ran.set(true));
    wait(inCall);

    assertThat(lanes.preempt("a")).containsExactly(running);
    assertThat(dropped.awaitEnd(Duration.ofSeconds(10))).isTrue();
    assertThat(running.awaitEnd(Duration.ofSeconds(10))).isTrue();
    assertThat(running.isPreempted()).isTrue();
    assertThat(interrupted).isTrue();
    assertThat(flagAfter).isFalse();
    assertThat(second.get()).isInstanceOf(SpaceException.class);
    assertThat(ran).isFalse();

    lanes.submit("a", job -> ran.set(true));
    await().untilTrue(ran);
    assertThat(lanes.preempt("nothing")).isEmpty();
  }

  @Test
  void after_close_nothing_new_runs() {
    AtomicBoolean ran = new AtomicBoolean();
    lanes.close();
    Lanes.Job job = lanes.submit("a", j -> ran.set(true));
    assertThat(job.awaitEnd(Duration.ZERO)).isTrue();
    assertThat(ran).isFalse();
  }

  @Test
  void what_a_section_throws_comes_out() {
    assertThatThrownBy(
            () ->
                lanes.inOrder(
                    "a",
                    () -> {
                      throw new IllegalStateException("on purpose");
                    }))
        .hasMessage("on purpose");
    assertThat(lanes.<Integer>inOrder("a", () -> 1)).isEqualTo(1);
  }
}
