package dev.snugly.benchmark.codec;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;

/** The values that are encoded. */
final class Values {
  private static final List<String> WORDS =
      List.of("stockholm", "customer", "active", "invoice", "pending", "blue", "north", "harbour");

  private static final int SAMPLES = 1_000;
  private static final int SAMPLE_BYTES = 1_000;

  private Values() {}

  /**
   * A value of one kind.
   *
   * @param kind {@code json} (generated), {@code random}, or {@code file}: the start of the file
   *     that the system property {@code snugly.values} names, again and again
   * @param size in bytes
   */
  static byte[] of(String kind, int size) {
    Random random = new Random(7);
    return switch (kind) {
      case "json" -> json(random, size);
      case "random" -> {
        byte[] bytes = new byte[size];
        random.nextBytes(bytes);
        yield bytes;
      }
      case "file" -> file(size);
      default -> throw new IllegalArgumentException("there are no values of the kind " + kind);
    };
  }

  /** Other values of the kind {@code json}, to train a dictionary from. */
  static List<byte[]> samples() {
    Random random = new Random(8);
    return Stream.generate(() -> json(random, SAMPLE_BYTES)).limit(SAMPLES).toList();
  }

  private static byte[] json(Random random, int size) {
    StringBuilder text = new StringBuilder("[");
    while (text.length() < size) {
      text.append("{\"id\":").append(random.nextInt(1_000_000));
      for (String field : List.of("name", "city", "state")) {
        text.append(",\"").append(field).append("\":\"");
        text.append(WORDS.get(random.nextInt(WORDS.size()))).append('-');
        text.append(random.nextInt(1000)).append('"');
      }
      text.append("},");
    }
    return Arrays.copyOf(text.toString().getBytes(StandardCharsets.UTF_8), size);
  }

  private static byte[] file(int size) {
    try {
      byte[] content = Files.readAllBytes(Path.of(System.getProperty("snugly.values")));
      ByteArrayOutputStream repeated = new ByteArrayOutputStream();
      while (repeated.size() < size) {
        repeated.writeBytes(content);
      }
      return Arrays.copyOf(repeated.toByteArray(), size);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
