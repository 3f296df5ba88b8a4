package dev.snugly.benchmark;

import dev.snugly.benchmark.client.ClientKind;
import dev.snugly.benchmark.measure.Extent;
import dev.snugly.benchmark.measure.Plan;
import dev.snugly.benchmark.measure.Results;
import dev.snugly.benchmark.measure.Run;
import dev.snugly.benchmark.report.Report;
import dev.snugly.benchmark.report.ResultFiles;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.Spec;

/** The program: measures, prints what was found, and writes it to files. */
@Command(
    name = "snugly-benchmark",
    sortOptions = false,
    usageHelpAutoWidth = true,
    description = {
      "Measures clients for Java beside each other, with compression and without.",
      "%nEach task is a thread with one request under way: a fifth are SET, two thirds GET of a value"
          + " that is there, the rest GET of one that is not. Every value that is read is compared.%n"
    })
public final class Main implements Callable<Integer> {
  private static final String UNJUDGED =
      "No aims are judged: nobody was warmed up, so most of this is Java's compiler.\n";

  @Spec private CommandSpec spec;
  @Mixin private Options options;

  @Option(
      names = {"-h", "--help"},
      usageHelp = true,
      description = "Show this text.")
  @SuppressWarnings("UnusedVariable") // picocli shows the text by itself.
  private boolean isHelp;

  /** Runs the program, and ends with 2 for wrong options and 1 for a measurement that failed. */
  public static void main(String[] words) {
    System.exit(line().execute(words));
  }

  /** The command line, which tells failures without their stack. */
  static CommandLine line() {
    return new CommandLine(new Main())
        .setCaseInsensitiveEnumValuesAllowed(true)
        .setExecutionExceptionHandler(Main::fail);
  }

  private static int fail(Exception error, CommandLine line, ParseResult ignored) {
    line.getErr().println("The measurement failed: " + error);
    for (Throwable cause = error.getCause(); cause != null; cause = cause.getCause()) {
      line.getErr().println("  because of " + cause);
    }
    line.getErr().flush();
    return CommandLine.ExitCode.SOFTWARE;
  }

  @Override
  public Integer call() throws Exception {
    Plan plan = options.plan();
    if (options.resultsFile() != null) { // Before what takes long.
      ResultFiles.makeFolder(options.resultsFile());
    }
    PrintWriter errors = spec.commandLine().getErr();
    Results results = new Run(plan, errors::println).run();
    PrintWriter output = spec.commandLine().getOut();
    output.println(about(plan));
    Report report = new Report(results);
    output.println(report.tables());
    output.println(plan.extent().isWarm() ? report.aims() : UNJUDGED);
    if (options.resultsFile() != null) {
      boolean cluster = plan.endpoint().cluster();
      for (Path path : ResultFiles.write(options.resultsFile(), results, cluster)) {
        output.println("Written: " + path);
      }
    }
    output.flush();
    return CommandLine.ExitCode.OK;
  }

  /** Measurements, and their number. */
  private static String about(Plan plan) {
    String archives =
        plan.clients().stream()
            .map(ClientKind::archive)
            .distinct()
            .collect(Collectors.joining(", "));
    Extent extent = plan.extent();
    String each =
        extent.operations() < Long.MAX_VALUE
            ? String.format(Locale.ROOT, "%,d operations", extent.operations())
            : String.format(
                Locale.ROOT,
                "%d s, after %d s",
                extent.most().toSeconds(),
                extent.warmUp().toSeconds());
    return String.format(
        Locale.ROOT,
        "Java %s; %s. Rounds: %d, of %s each; %,d keys.\n",
        Runtime.version(),
        archives,
        extent.rounds(),
        each,
        extent.keys());
  }
}
