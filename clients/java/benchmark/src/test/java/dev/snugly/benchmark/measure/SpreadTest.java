package dev.snugly.benchmark.measure;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.DoubleRange;
import net.jqwik.api.constraints.NotEmpty;
import org.junit.jupiter.api.Test;

class SpreadTest {
  @Test
  void theMedianIsTheOneInTheMiddleOrBetweenTheTwo() {
    assertEquals(new Spread(3, 1, 9), Spread.of(List.of(9.0, 1.0, 3.0)));
    assertEquals(new Spread(2.5, 1, 9), Spread.of(List.of(9.0, 1.0, 3.0, 2.0)));
  }

  @Property
  void halfOfAllAreNotAboveTheMedianAndHalfNotBelow(
      @ForAll @NotEmpty List<@DoubleRange(min = -1e9, max = 1e9) Double> numbers) {
    Spread spread = Spread.of(numbers);
    long below = numbers.stream().filter(number -> number <= spread.median()).count();
    long above = numbers.stream().filter(number -> number >= spread.median()).count();
    assertTrue(2 * below >= numbers.size() && 2 * above >= numbers.size());
    assertTrue(spread.low() <= spread.median() && spread.median() <= spread.high());
  }
}
