package dev.snugly.benchmark.report;

import static dev.snugly.benchmark.client.ClientKind.GLIDE;
import static dev.snugly.benchmark.client.ClientKind.GLIDE_COMPRESSED;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.benchmark.measure.Metric;
import dev.snugly.benchmark.measure.Workload;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ResultFilesTest {
  private static final Workload WORKLOAD = Made.workload("json", 100, "direct");
  private static final Made MADE =
      new Made()
          .add(WORKLOAD, GLIDE, 100, 1)
          .add(WORKLOAD, GLIDE_COMPRESSED, 90, 2)
          .add(WORKLOAD, GLIDE, 200, 1)
          .add(WORKLOAD, GLIDE_COMPRESSED, 160, 3);

  @Test
  void theJsonHasEveryRoundWithTheNamesOfGlidesResults() {
    List<Map<String, Object>> records = ResultFiles.records(MADE.results, false);
    assertEquals(4, records.size());
    Map<String, Object> last = records.get(3);
    assertEquals("glide_compressed", last.get("client"));
    assertEquals(2, last.get("round"));
    assertEquals(100, last.get("num_of_tasks"));
    assertEquals(12.0, last.get("get_existing_p99_latency"));
    assertEquals(3.0, last.get("get_non_existing_average_latency"));
    assertEquals(1.5, last.get("set_std_dev"));
    assertEquals(160.0, (double) last.get("tps"), 1e-9);
  }

  @Test
  void theCsvHasALineForEachFigureBesideTheSameClientUncompressed() {
    List<String> lines = ResultFiles.csv(MADE.results).lines().toList();
    assertEquals(1 + 2 * Metric.all().size(), lines.size());
    int columns = lines.get(0).split(",", -1).length;
    lines.forEach(line -> assertEquals(columns, line.split(",", -1).length, line));
    String average =
        "data=json size=100 tasks=100 clients=1 link=direct backend=zstd,glide_compressed,set_average_latency,"
            + "2,2.50000,2.00000,3.00000,glide,2.50000,2.00000,3.00000,2.0 3.0";
    assertTrue(lines.contains(average), lines::toString);
  }

  @Test
  void theCsvLiesBesideTheJsonInAFolderThatNeedNotBeThere(@TempDir Path folder) throws IOException {
    Path json = folder.resolve("new").resolve("results.json");
    List<Path> written = ResultFiles.write(json, MADE.results, false);
    assertEquals(List.of(json, json.resolveSibling("results.csv")), written);
    assertEquals(ResultFiles.csv(MADE.results), Files.readString(written.get(1)));
  }
}
