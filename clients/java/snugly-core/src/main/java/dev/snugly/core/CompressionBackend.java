package dev.snugly.core;

import java.util.Locale;

/** Backends that new values are compressed with. Every client reads all of them. */
public enum CompressionBackend {
  /** Small. Levels -131072 to 22, default 3. */
  ZSTD(-131_072, 22, 3, 1),
  /** Fast. Levels -128 to 12, default 0: below 0 is acceleration, above 0 high compression. */
  LZ4(-128, 12, 0, 0),
  /** Compresses nothing and reads everything: for readers that go first in a roll-out. */
  NONE(0, 0, 0, 0);

  private final int lowestLevel;
  private final int highestLevel;
  private final int defaultLevel;
  private final int probeLevel;

  CompressionBackend(int lowestLevel, int highestLevel, int defaultLevel, int probeLevel) {
    this.lowestLevel = lowestLevel;
    this.highestLevel = highestLevel;
    this.defaultLevel = defaultLevel;
    this.probeLevel = probeLevel;
  }

  /** Returns the lowest level, which is the fastest. */
  public int lowestLevel() {
    return lowestLevel;
  }

  /** Returns the highest level, which makes values smallest. */
  public int highestLevel() {
    return highestLevel;
  }

  /** Returns the level where none is given. */
  public int defaultLevel() {
    return defaultLevel;
  }

  /** The highest level that is fast where a value does not compress. */
  int probeLevel() {
    return probeLevel;
  }

  /** Returns the name in the specification, such as {@code zstd}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
