package dev.snugly.benchmark.client;

import glide.api.models.configuration.CompressionBackend;
import java.util.Locale;

/** Backends of those who compress, each at its default level. */
public enum Backend {
  /** Smaller values. */
  ZSTD(dev.snugly.core.CompressionBackend.ZSTD, CompressionBackend.ZSTD),
  /** Less time. */
  LZ4(dev.snugly.core.CompressionBackend.LZ4, CompressionBackend.LZ4);

  private final dev.snugly.core.CompressionBackend snugly;
  private final CompressionBackend glide;

  Backend(dev.snugly.core.CompressionBackend snugly, CompressionBackend glide) {
    this.snugly = snugly;
    this.glide = glide;
  }

  dev.snugly.core.CompressionBackend snugly() {
    return snugly;
  }

  CompressionBackend glide() {
    return glide;
  }

  /** Returns the name as it is given and shown, such as {@code lz4}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
