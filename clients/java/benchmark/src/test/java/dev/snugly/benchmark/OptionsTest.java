package dev.snugly.benchmark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.benchmark.client.ClientKind;
import dev.snugly.benchmark.link.Rate;
import dev.snugly.benchmark.measure.Extent;
import dev.snugly.benchmark.measure.Plan;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
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
    new CommandLine(program).parseArgs(words);
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
    "--dataSize, 100 big, no whole number",
    "--concurrentTasks, 0, no whole number",
    "--clientCount, -1, no whole number",
    "--port, 65536, at most 65535",
    "--link, 100mbps, 100mbit",
    "--data, no/such/file, which is no file",
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
}
