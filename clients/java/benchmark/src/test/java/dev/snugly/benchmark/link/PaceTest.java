package dev.snugly.benchmark.link;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.LongRange;
import org.junit.jupiter.api.Test;

class PaceTest {
  /** A byte takes a microsecond. */
  private static final Rate RATE = Rate.parse("8mbit");

  @Test
  void whatFindsTheLinkIdleTakesItsOwnTime() {
    Pace pace = new Pace(RATE, 0);
    pace.idle(5_000);
    assertEquals(100_000, pace.remaining(5_000, 100));
  }

  @Test
  void whatFindsItBusyWaitsForWhatIsBefore() {
    Pace pace = new Pace(RATE, 0);
    pace.remaining(0, 100);
    assertEquals(100_000 - 40_000 + 7_000, pace.remaining(40_000, 7));
  }

  @Test
  void timeInWhichNothingWaitedIsLost() {
    Pace pace = new Pace(RATE, 0);
    pace.remaining(0, 100);
    pace.idle(1_000_000);
    assertEquals(10_000, pace.remaining(1_000_000, 10));
  }

  @Property
  void whoeverWakesTooLateFindsTheSameEnd(
      @ForAll List<@IntRange(min = 1, max = 16384) Integer> pieces,
      @ForAll @LongRange(min = 0, max = 100_000) long late) {
    Pace pace = new Pace(RATE, 0);
    long now = 0;
    long sum = 0;
    for (int piece : pieces) {
      sum += piece * 1000L;
      long remaining = pace.remaining(now, piece);
      assertEquals(sum, now + remaining);
      now += Math.max(remaining, 0) + late;
    }
  }
}
