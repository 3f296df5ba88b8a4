package dev.snugly.benchmark.measure;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

class LatencyTest {
  @Test
  void figuresAreMillisecondsWithinAThousandth() {
    Histogram times = new Histogram(3);
    for (int number = 1; number <= 100; number++) {
      times.recordValue(number * 1_000_000L);
    }
    Latency latency = Latency.of(times);
    assertEquals(100, latency.count());
    assertEquals(50.5, latency.average(), 0.05);
    assertEquals(50, latency.p50(), 0.05);
    assertEquals(90, latency.p90(), 0.09);
    assertEquals(99, latency.p99(), 0.1);
    assertEquals(28.866, latency.deviation(), 0.03);
  }

  @Test
  void whatWasNeverAskedForHasNone() {
    assertEquals(new Latency(0, 0, 0, 0, 0, 0), Latency.of(new Histogram(3)));
  }
}
