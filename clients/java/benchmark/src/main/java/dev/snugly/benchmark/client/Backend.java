package dev.snugly.benchmark.client;

import dev.snugly.benchmark.data.Dictionaries;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Dictionary;
import glide.api.models.configuration.CompressionBackend;
import java.util.List;
import java.util.Locale;

/** Backends of those who compress, each at its default level. */
public enum Backend {
  /** Smaller values. */
  ZSTD(dev.snugly.core.CompressionBackend.ZSTD, CompressionBackend.ZSTD, false),
  /** Less time. */
  LZ4(dev.snugly.core.CompressionBackend.LZ4, CompressionBackend.LZ4, false),
  /** The same with a dictionary for generated records, which GLIDE has none of. */
  ZSTD_DICTIONARY(dev.snugly.core.CompressionBackend.ZSTD, CompressionBackend.ZSTD, true),
  /** The same with LZ4. */
  LZ4_DICTIONARY(dev.snugly.core.CompressionBackend.LZ4, CompressionBackend.LZ4, true);

  /** Made when it is used first. */
  private static final class OfRecords {
    static final Dictionary DICTIONARY = Dictionaries.ofRecords();
  }

  private final dev.snugly.core.CompressionBackend snugly;
  private final CompressionBackend glide;
  private final boolean hasDictionary;

  Backend(
      dev.snugly.core.CompressionBackend snugly, CompressionBackend glide, boolean hasDictionary) {
    this.snugly = snugly;
    this.glide = glide;
    this.hasDictionary = hasDictionary;
  }

  CompressionConfiguration snugly() {
    return CompressionConfiguration.builder()
        .backend(snugly)
        .dictionary(hasDictionary ? OfRecords.DICTIONARY : null)
        .build();
  }

  CompressionBackend glide() {
    return glide;
  }

  /** Returns the keys that clients write beside those that they are asked to write. */
  public List<String> ownKeys() {
    return hasDictionary
        ? List.of(
            CompressionConfiguration.DEFAULT_DICTIONARY_PREFIX
                + ":dict:"
                + OfRecords.DICTIONARY.id())
        : List.of();
  }

  /** Returns the name as it is given and shown, such as {@code lz4}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
