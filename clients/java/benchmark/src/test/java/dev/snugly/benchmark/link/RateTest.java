package dev.snugly.benchmark.link;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class RateTest {
  @ParameterizedTest
  @CsvSource({"100mbit, 100000000", "1gbit, 1000000000", "56KBIT, 56000"})
  void aRateIsANumberAndAUnit(String text, long bitsPerSecond) {
    Rate rate = Rate.parse(text);
    assertEquals(bitsPerSecond, rate.bitsPerSecond());
    assertTrue(rate.isLimited());
    assertTrue(rate.relayed());
    assertEquals(rate, Rate.parse(rate.toString()));
  }

  @Test
  void whatTheSystemLimitsIsALimitWithoutARelay() {
    Rate rate = Rate.parse("tc:1gbit");
    assertTrue(rate.isLimited());
    assertFalse(rate.relayed());
    assertEquals("tc:1gbit", rate.toString());
  }

  @Test
  void directIsNoLimit() {
    assertFalse(Rate.parse("direct").isLimited());
    assertEquals(Rate.DIRECT, Rate.parse("direct"));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "100",
        "mbit",
        "0mbit",
        "-1mbit",
        "1.5gbit",
        "100mbps",
        "9999999gbit",
        "tc:",
        "tc:direct"
      })
  void anythingElseIsRefusedWithAnExample(String text) {
    Exception error = assertThrows(IllegalArgumentException.class, () -> Rate.parse(text));
    assertTrue(error.getMessage().contains("100mbit"), error.getMessage());
  }
}
