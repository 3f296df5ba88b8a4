package dev.snugly.benchmark.measure;

import dev.snugly.benchmark.client.ClientKind;
import dev.snugly.benchmark.data.Corpus;
import java.util.List;
import java.util.stream.IntStream;

/**
 * The keys of one client: which there are, and the value of each, which is always the same.
 *
 * @param client who has written them; nobody reads what others have written
 * @param corpus the values
 * @param count how many there are
 */
record Keyspace(ClientKind client, Corpus corpus, int count) {
  private static final String PREFIX = "snugly-bench:";

  /** A key that has a value. */
  String key(int number) {
    return PREFIX + client + ":" + number;
  }

  /** A key that never has one. */
  String missing(int number) {
    return PREFIX + client + ":missing:" + number;
  }

  String value(int number) {
    return corpus.value(number);
  }

  List<String> keys() {
    return IntStream.range(0, count).mapToObj(this::key).toList();
  }
}
