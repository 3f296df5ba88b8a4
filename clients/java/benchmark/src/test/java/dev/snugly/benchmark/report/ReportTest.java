package dev.snugly.benchmark.report;

import static dev.snugly.benchmark.client.ClientKind.GLIDE;
import static dev.snugly.benchmark.client.ClientKind.GLIDE_COMPRESSED;
import static dev.snugly.benchmark.client.ClientKind.JEDIS_SNUGLY;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.benchmark.measure.Workload;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class ReportTest {
  private static final Workload WORKLOAD = Made.workload("json", 4000, "1gbit");

  private static Stream<List<String>> rows(String text) {
    return text.lines()
        .filter(line -> line.startsWith("|"))
        .map(line -> Arrays.stream(line.substring(1).split("\\|")).map(String::strip).toList());
  }

  @Test
  void whoCompressesIsShownBesideItselfUncompressed() {
    Made made =
        new Made().add(WORKLOAD, GLIDE, 8087, 12.5).add(WORKLOAD, GLIDE_COMPRESSED, 14874, 6.25);
    Report report = new Report(made.results);
    String text = report.tables();
    assertTrue(
        text.startsWith("## json, 4,000 B; tasks: 100, clients: 1, link: 1gbit, backend: zstd\n"),
        text);
    assertEquals(
        List.of(
            List.of(
                "glide", "SET", "8,087", "4,000", "12.500", "12.500", "25.000", "50.000", "6.250"),
            List.of(
                "glide_compressed",
                "SET",
                "14,874 (+83.9 %)",
                "40",
                "6.250 (-50.0 %)",
                "6.250 (-50.0 %)",
                "12.500 (-50.0 %)",
                "25.000 (-50.0 %)",
                "3.125 (-50.0 %)")),
        rows(text).filter(row -> row.get(1).equals("SET")).toList());
    assertTrue(report.aims().contains("No aim could be judged"), report::aims);
  }

  @Test
  void aimsAreToldWithWhatWasFoundAndHowManyWereMet() {
    Workload direct = Made.workload("json", 4000, "direct");
    Made made = new Made().add(direct, GLIDE_COMPRESSED, 100, 1).add(direct, JEDIS_SNUGLY, 120, 1);
    String text = new Report(made.results).aims();
    List<String> row =
        rows(text).filter(cells -> cells.contains("MISSED")).findFirst().orElseThrow();
    assertEquals(
        List.of(
            "json",
            "direct",
            "100 on 1",
            "4,000 B",
            "tps",
            "jedis_snugly / glide_compressed",
            "1.20",
            ">= 1.3",
            "MISSED"),
        row);
    assertTrue(text.endsWith("2 of 3 aims met.\n"), text);
  }

  @Test
  void theLinesOfATableAreEquallyLong() {
    Made made = new Made().add(WORKLOAD, GLIDE, 8087, 12.5).add(WORKLOAD, JEDIS_SNUGLY, 1, 1);
    String text = new Report(made.results).tables();
    assertEquals(
        1,
        text.lines()
            .filter(line -> line.startsWith("|"))
            .mapToInt(String::length)
            .distinct()
            .count());
  }
}
