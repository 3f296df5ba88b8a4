package dev.snugly.benchmark.data;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;

/**
 * Values of one kind and size.
 *
 * @param name {@code pattern}, {@code json}, or that of a file
 * @param values at least one
 */
public record Corpus(String name, List<String> values) {
  /** The name of values that are one character again and again. */
  public static final String PATTERN = "pattern";

  /** The name of generated records. */
  public static final String JSON = "json";

  /** The most values that there are of a kind. */
  static final int MOST_VALUES = 1000;

  private static final long SEED = 1;

  /**
   * Returns values of a kind.
   *
   * @param kind {@link #PATTERN}, {@link #JSON}, or the path of a file with one record a line
   * @param size of each value in UTF-8, in bytes; those of records that are not ASCII may be up to
   *     three bytes shorter
   * @throws IOException if the file cannot be read or has no records
   */
  public static Corpus of(String kind, int size) throws IOException {
    return switch (kind) {
      case PATTERN -> new Corpus(PATTERN, List.of("0".repeat(size)));
      case JSON -> new Corpus(JSON, cut(generated(size), size));
      default -> {
        Path path = Path.of(kind);
        yield new Corpus(name(path), cut(records(path), size));
      }
    };
  }

  /** Returns the value that belongs to a number. */
  public String value(int number) {
    return values.get(number % values.size());
  }

  private static List<String> generated(int size) {
    JsonRecords records = new JsonRecords(new Random(SEED));
    return Stream.generate(records::next).limit(MOST_VALUES + size).toList();
  }

  private static List<String> records(Path path) throws IOException {
    try (Stream<String> lines = Files.lines(path)) {
      List<String> records = lines.filter(line -> !line.isBlank()).limit(MOST_VALUES).toList();
      if (records.isEmpty()) {
        throw new IOException(path + " has no records: give a file with one on each line");
      }
      return records;
    }
  }

  private static String name(Path path) {
    String file = path.getFileName().toString();
    int dot = file.lastIndexOf('.');
    return dot > 0 ? file.substring(0, dot) : file;
  }

  /**
   * The beginnings of records, of so many bytes: those of a record that is shorter go on with the
   * records behind it, as the elements of an array do.
   */
  static List<String> cut(List<String> records, int size) {
    List<String> values = new ArrayList<>();
    for (int first = 0; first < Math.min(records.size(), MOST_VALUES); first++) {
      StringBuilder value = new StringBuilder();
      // A character has at least one byte, so these are enough of them.
      for (int next = first; value.length() < size; next = (next + 1) % records.size()) {
        value.append(value.isEmpty() ? "" : ",").append(records.get(next));
      }
      values.add(beginning(value.toString(), size));
    }
    return List.copyOf(values);
  }

  /** The longest beginning that has at most so many bytes and ends with a whole character. */
  private static String beginning(String text, int size) {
    byte[] bytes = text.getBytes(UTF_8);
    int end = Math.min(size, bytes.length);
    while (end < bytes.length && (bytes[end] & 0xC0) == 0x80) {
      end--;
    }
    return new String(bytes, 0, end, UTF_8);
  }
}
