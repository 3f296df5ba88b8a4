package dev.snugly.benchmark.measure;

import java.util.random.RandomGenerator;

/** Operations of a task, in the shares that GLIDE's own benchmark has. */
public enum Operation {
  /** Writes a value over the one that is there. */
  SET("SET", "set"),
  /** Reads a value that is there. */
  GET_EXISTING("GET existing", "get_existing"),
  /** Reads a key that has no value. */
  GET_MISSING("GET missing", "get_non_existing");

  private static final double GETS = 0.8;
  private static final double GETS_OF_EXISTING = 0.8;

  private final String title;
  private final String field;

  Operation(String title, String field) {
    this.title = title;
    this.field = field;
  }

  static Operation any(RandomGenerator random) {
    if (random.nextDouble() >= GETS) {
      return SET;
    }
    return random.nextDouble() < GETS_OF_EXISTING ? GET_EXISTING : GET_MISSING;
  }

  /** Returns what the names of its metrics begin with, which is what GLIDE's results call it. */
  public String field() {
    return field;
  }

  /** Returns its name for people. */
  @Override
  public String toString() {
    return title;
  }
}
