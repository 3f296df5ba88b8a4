package dev.snugly.benchmark;

import dev.snugly.benchmark.client.Backend;
import dev.snugly.benchmark.client.ClientKind;
import dev.snugly.benchmark.client.Endpoint;
import dev.snugly.benchmark.data.Corpus;
import dev.snugly.benchmark.link.Rate;
import dev.snugly.benchmark.measure.Extent;
import dev.snugly.benchmark.measure.Plan;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import picocli.CommandLine.TypeConversionException;

/** The command line. Names and defaults are those of GLIDE's own benchmark where it has them. */
final class Options {
  private static final String ALL = "all";

  /** Between the items of a list. */
  private static final String BETWEEN = "[\\s,]+";

  private static final int MOST_PORT = 65_535;

  @Spec(Spec.Target.MIXEE)
  private CommandSpec spec;

  @Option(
      names = "--clients",
      split = BETWEEN,
      hideParamSyntax = true,
      defaultValue = ALL,
      paramLabel = "NAMES",
      description =
          "Whom to measure: all, or some of glide, glide_compressed, lettuce, lettuce_snugly, jedis,"
              + " jedis_snugly (default: all).")
  private List<String> clients;

  @Option(
      names = "--backend",
      defaultValue = "zstd",
      description =
          "What those who compress do it with, at its default level: zstd or lz4; zstd_dictionary or"
              + " lz4_dictionary, which is with a dictionary for --data json, except for GLIDE"
              + " (default: zstd).")
  private Backend backend;

  @Option(
      names = "--data",
      defaultValue = Corpus.PATTERN,
      paramLabel = "KIND",
      description =
          "The values: pattern (one character again and again), json (generated records), or a file"
              + " with one record on each line (default: pattern).")
  private String data;

  @Option(
      names = "--dataSize",
      split = BETWEEN,
      hideParamSyntax = true,
      defaultValue = "100 4000",
      paramLabel = "NUMBERS",
      converter = Positive.class,
      description = "Bytes of each value (default: \"100 4000\").")
  private List<Integer> dataSize;

  @Option(
      names = "--concurrentTasks",
      split = BETWEEN,
      hideParamSyntax = true,
      defaultValue = "1 10 100 1000",
      paramLabel = "NUMBERS",
      converter = Positive.class,
      description = "Threads that have one request under way each (default: \"1 10 100 1000\").")
  private List<Integer> concurrentTasks;

  @Option(
      names = "--clientCount",
      split = BETWEEN,
      hideParamSyntax = true,
      defaultValue = "1",
      paramLabel = "NUMBERS",
      converter = Positive.class,
      description = "Client objects that the tasks use in turn (default: 1).")
  private List<Integer> clientCount;

  @Option(
      names = "--link",
      split = BETWEEN,
      hideParamSyntax = true,
      defaultValue = "direct",
      paramLabel = "RATES",
      converter = Link.class,
      description =
          "What is between the clients and the server: direct, or a relay on loopback that transmits"
              + " so much in each direction, such as \"direct 1gbit 100mbit\"; tc:1gbit where the system"
              + " transmits no more already, which is only named in the results (default: direct).")
  private List<Rate> link;

  @Option(
      names = "--host",
      defaultValue = "localhost",
      description = "Of the server (default: ${DEFAULT-VALUE}).")
  private String host;

  @Option(
      names = "--port",
      defaultValue = "6379",
      converter = Positive.class,
      description = "Of the server (default: ${DEFAULT-VALUE}).")
  private int port;

  @Option(
      names = "--tls",
      description = "Use TLS; the server's certificate must be one that the machine trusts.")
  private boolean tls;

  @Option(
      names = "--tlsCa",
      paramLabel = "FILE",
      description = "Use TLS, and trust the certificates of this PEM file instead.")
  private Path tlsCa;

  @Option(names = "--clusterModeEnabled", description = "The server is a node of a cluster.")
  private boolean clusterModeEnabled;

  @Option(
      names = "--minimal",
      description =
          "One round of 1,000 operations, nobody warmed up, as GLIDE's published figures were"
              + " measured: to see that everything runs.")
  private boolean minimal;

  @Option(
      names = "--rounds",
      paramLabel = "NUMBER",
      converter = Positive.class,
      description = "How often everything is measured, in turn (default: 3).")
  private Integer rounds;

  @Option(
      names = "--seconds",
      paramLabel = "NUMBER",
      converter = Positive.class,
      description = "Of each measurement (default: 3), after two thirds of it to warm up.")
  private Integer seconds;

  @Option(
      names = "--resultsFile",
      paramLabel = "FILE",
      description = "Write the samples of every round to this file as JSON, and beside it as CSV.")
  private Path resultsFile;

  Path resultsFile() {
    return resultsFile;
  }

  /** Measurements to be made, or a {@link ParameterException} that says what is wrong. */
  Plan plan() {
    check(port <= MOST_PORT, "--port is at most " + MOST_PORT);
    check(
        !clusterModeEnabled || link.stream().noneMatch(Rate::relayed),
        "--link cannot stand before a cluster, whose nodes the clients find by themselves: use"
            + " direct");
    boolean encrypted = tls || tlsCa != null;
    check(
        !encrypted || link.stream().noneMatch(Rate::relayed),
        "--link has the clients connect to 127.0.0.1, which the server's certificate is not for:"
            + " without --tls, or use direct");
    check(
        tlsCa == null || Files.isRegularFile(tlsCa),
        "--tlsCa has " + tlsCa + ", which is no file: give one with certificates in PEM");
    check(
        data.equals(Corpus.PATTERN)
            || data.equals(Corpus.JSON)
            || Files.isRegularFile(Path.of(data)),
        "--data has " + data + ", which is no file: give pattern, json, or one with records");
    return new Plan(
        clients.stream().flatMap(this::named).distinct().toList(),
        data,
        dataSize.stream().distinct().toList(),
        concurrentTasks.stream().distinct().toList(),
        clientCount.stream().distinct().toList(),
        link.stream().distinct().toList(),
        backend,
        new Endpoint(host, port, encrypted, tlsCa, clusterModeEnabled, 1),
        extent());
  }

  private void check(boolean holds, String otherwise) {
    if (!holds) {
      throw new ParameterException(spec.commandLine(), otherwise);
    }
  }

  private Stream<ClientKind> named(String name) {
    if (name.equals(ALL)) {
      return Stream.of(ClientKind.values());
    }
    List<ClientKind> found =
        Stream.of(ClientKind.values())
            .filter(client -> client.toString().equals(name.toLowerCase(Locale.ROOT)))
            .toList();
    check(
        !found.isEmpty(),
        "--clients has %s, which is none of %s".formatted(name, List.of(ClientKind.values())));
    return found.stream();
  }

  private Extent extent() {
    if (minimal) {
      check(rounds == null && seconds == null, "--minimal has no --rounds and --seconds");
      return Extent.MINIMAL;
    }
    Extent full = Extent.FULL;
    return new Extent(
        full.keys(),
        rounds == null ? full.rounds() : rounds,
        seconds == null ? full.warmUp() : Duration.ofMillis(seconds * 2000L / 3),
        seconds == null ? full.most() : Duration.ofSeconds(seconds),
        full.operations());
  }

  static final class Positive implements ITypeConverter<Integer> {
    private static final int MOST_DIGITS = 9;

    @Override
    public Integer convert(String text) {
      boolean isNumber = text.matches("[0-9]{1," + MOST_DIGITS + "}") && Integer.parseInt(text) > 0;
      if (!isNumber) {
        throw new TypeConversionException("'" + text + "' is no whole number from 1");
      }
      return Integer.valueOf(text);
    }
  }

  static final class Link implements ITypeConverter<Rate> {
    @Override
    public Rate convert(String text) {
      try {
        return Rate.parse(text);
      } catch (IllegalArgumentException error) {
        throw new TypeConversionException(error.getMessage());
      }
    }
  }
}
