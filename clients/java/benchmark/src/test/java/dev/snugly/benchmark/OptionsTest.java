package dev.snugly.benchmark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.benchmark.client.Backend;
import dev.snugly.benchmark.client.ClientKind;
import dev.snugly.benchmark.link.Rate;
import dev.snugly.benchmark.measure.Extent;
import dev.snugly.benchmark.measure.Plan;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.ParameterException;

class OptionsTest {
  /** A command that has nothing but the options. */
  @Command
  private static final class Program {
    @Mixin private Options options;
  }

  private static Plan plan(String... words) {
    Program program = new Program();
    new CommandLine(program).setCaseInsensitiveEnumValuesAllowed(true).parseArgs(words);
    return program.options.plan();
  }

  @Test
  void theDefaultsAreThoseOfGlide() {
    Plan plan = plan();
    assertEquals(List.of(ClientKind.values()), plan.clients());
    assertEquals(List.of(100, 4000), plan.dataSizes());
    assertEquals(List.of(1, 10, 100, 1000), plan.tasks());
    assertEquals(List.of(1), plan.clientCounts());
    assertEquals("localhost", plan.endpoint().host());
    assertEquals(6379, plan.endpoint().port());
    assertEquals(List.of(Rate.DIRECT), plan.links());
    assertEquals(Backend.ZSTD, plan.backend());
    assertEquals(Extent.FULL, plan.extent());
  }

  @Test
  void listsHaveBlanksOrCommasBetweenTheirItemsAndNoItemTwice() {
    Plan plan =
        plan(
            "--clients",
            "glide,JEDIS glide",
            "--dataSize",
            "100 4000",
            "--concurrentTasks",
            "1,10 10",
            "--link",
            "1gbit direct");
    assertEquals(List.of(ClientKind.GLIDE, ClientKind.JEDIS), plan.clients());
    assertEquals(List.of(100, 4000), plan.dataSizes());
    assertEquals(List.of(1, 10), plan.tasks());
    assertEquals(List.of(Rate.parse("1gbit"), Rate.DIRECT), plan.links());
  }

  @Test
  void theBackendIsNamedAsInTheResults() {
    assertEquals(Backend.LZ4, plan("--backend", "lz4").backend());
  }

  @Test
  void minimalIsAThousandOperationsAndNothingElseMaySayHowMuch() {
    assertEquals(Extent.MINIMAL, plan("--minimal").extent());
    assertThrows(ParameterException.class, () -> plan("--minimal", "--rounds", "2"));
  }

  @Test
  void warmingUpTakesTwoThirdsOfAMeasurement() {
    Extent extent = plan("--seconds", "6", "--rounds", "2").extent();
    assertEquals(Duration.ofSeconds(4), extent.warmUp());
    assertEquals(Duration.ofSeconds(6), extent.most());
    assertEquals(2, extent.rounds());
  }

  @ParameterizedTest
  @CsvSource({
    "--clients, redisson, none of",
    "--backend, gzip, LZ4",
    "--dataSize, 100 big, no whole number",
    "--concurrentTasks, 0, no whole number",
    "--clientCount, -1, no whole number",
    "--port, 65536, at most 65535",
    "--link, 100mbps, 100mbit",
    "--data, no/such/file, which is no file",
    "--tlsCa, no/such/file, which is no file",
    "--rounds, 99999999999, no whole number",
  })
  void wrongOptionsAreToldWithWhatIsWrong(String option, String value, String told) {
    ParameterException error = assertThrows(ParameterException.class, () -> plan(option, value));
    assertTrue(error.getMessage().contains(told), error.getMessage());
    assertTrue(error.getMessage().contains(option), error.getMessage());
  }

  @Test
  void aClusterIsNotMeasuredBehindALinkThatItsNodesWouldNotBeBehind() {
    assertThrows(ParameterException.class, () -> plan("--clusterModeEnabled", "--link", "100mbit"));
    assertTrue(plan("--clusterModeEnabled").endpoint().cluster());
  }

  @Test
  void aCertificateToTrustMeansTls(@TempDir Path folder) throws IOException {
    Path ca = Files.createFile(folder.resolve("ca.pem"));
    assertTrue(plan("--tlsCa", ca.toString()).endpoint().tls());
    assertEquals(ca, plan("--tlsCa", ca.toString()).endpoint().tlsCa());
    assertFalse(plan().endpoint().tls());
  }

  @Test
  void tlsIsNotMeasuredBehindALinkThatTheCertificateIsNotFor() {
    ParameterException error =
        assertThrows(ParameterException.class, () -> plan("--tls", "--link", "direct 100mbit"));
    assertTrue(error.getMessage().contains("certificate"), error.getMessage());
    assertTrue(plan("--tls", "--link", "direct tc:1gbit").endpoint().tls());
  }
}
