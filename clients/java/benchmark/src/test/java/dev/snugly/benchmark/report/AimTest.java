package dev.snugly.benchmark.report;

import static dev.snugly.benchmark.client.ClientKind.GLIDE;
import static dev.snugly.benchmark.client.ClientKind.GLIDE_COMPRESSED;
import static dev.snugly.benchmark.client.ClientKind.JEDIS;
import static dev.snugly.benchmark.client.ClientKind.JEDIS_SNUGLY;
import static dev.snugly.benchmark.client.ClientKind.LETTUCE;
import static dev.snugly.benchmark.client.ClientKind.LETTUCE_SNUGLY;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.benchmark.client.ClientKind;
import dev.snugly.benchmark.measure.Workload;
import dev.snugly.benchmark.report.Aim.Verdict;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class AimTest {
  private static List<String> told(Made made) {
    return Aim.judge(made.results).stream().map(AimTest::told).toList();
  }

  private static String told(Verdict verdict) {
    Aim aim = verdict.aim();
    return "%s %s %s of %s: %s"
        .formatted(aim.subject(), aim.metric(), aim.says(), aim.base(), verdict.met());
  }

  @Test
  void oursIsToBeThirtyPercentFasterThanTheRivalAndItsTailNotLonger() {
    Workload workload = Made.workload("pattern", 4000, "direct");
    Made made =
        new Made()
            .add(workload, GLIDE_COMPRESSED, 100, 2)
            .add(workload, JEDIS_SNUGLY, 129, 2)
            .add(workload, LETTUCE_SNUGLY, 131, 2.1);
    assertEquals(
        List.of(
            "lettuce_snugly tps >= 1.3 of glide_compressed: true",
            "lettuce_snugly set_p99_latency <= 1 of glide_compressed: false",
            "lettuce_snugly get_existing_p99_latency <= 1 of glide_compressed: false",
            "jedis_snugly tps >= 1.3 of glide_compressed: false",
            "jedis_snugly set_p99_latency <= 1 of glide_compressed: true",
            "jedis_snugly get_existing_p99_latency <= 1 of glide_compressed: true"),
        told(made));
  }

  @ParameterizedTest
  @CsvSource({
    "pattern, 100, direct, 97.1, >= 0.97, true",
    "json, 100, 100mbit, 96.9, >= 0.97, false",
    "json, 4000, direct, 90.1, >= 0.9, true",
    "json, 4000, direct, 89, >= 0.9, false",
    "records, 4000, 1gbit, 100.1, > 1, true",
    "records, 4000, 1gbit, 100, > 1, false",
  })
  void compressionKeepsMostOfTheSpeedAndGainsOnALink(
      String data, int size, String link, double tps, String says, boolean met) {
    Workload workload = Made.workload(data, size, link);
    Made made = new Made().add(workload, JEDIS, 100, 1).add(workload, JEDIS_SNUGLY, tps, 1);
    assertEquals(List.of("jedis_snugly tps %s of jedis: %s".formatted(says, met)), told(made));
  }

  @Test
  void oneCharacterAgainAndAgainAndOtherSizesShowNothing() {
    for (Workload workload :
        List.of(Made.workload("pattern", 4000, "100mbit"), Made.workload("json", 1000, "direct"))) {
      Made made = new Made().add(workload, LETTUCE, 1, 1).add(workload, LETTUCE_SNUGLY, 1, 1);
      assertEquals(List.of(), told(made));
    }
  }

  @Test
  void aLinkThatCarriesTheSameBytesOfAllDoesNotTellOursFromTheRival() {
    Workload workload = Made.workload("json", 4000, "100mbit");
    Made made = new Made().add(workload, GLIDE_COMPRESSED, 1, 1).add(workload, JEDIS_SNUGLY, 1, 1);
    assertEquals(List.of(), told(made));
  }

  @Test
  void thereAreNoAimsForOthers() {
    Workload workload = Made.workload("json", 100, "direct");
    Made made = new Made();
    for (ClientKind client : List.of(GLIDE, GLIDE_COMPRESSED, LETTUCE, JEDIS)) {
      made.add(workload, client, 1, 1);
    }
    assertTrue(told(made).isEmpty());
  }

  @Test
  void theMedianOfTheRatiosWithinARoundCounts() {
    Workload workload = Made.workload("json", 100, "direct");
    Made made = new Made();
    // The machine becomes ten times slower in the second round, which is nobody's merit.
    made.add(workload, JEDIS, 1000, 1).add(workload, JEDIS_SNUGLY, 980, 1);
    made.add(workload, JEDIS, 100, 1).add(workload, JEDIS_SNUGLY, 98, 1);
    made.add(workload, JEDIS, 1000, 1).add(workload, JEDIS_SNUGLY, 10, 1);
    assertEquals(0.98, Aim.judge(made.results).get(0).ratio(), 1e-9);
  }
}
