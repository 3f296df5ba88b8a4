package dev.snugly.lettuce;

import dev.snugly.core.SnuglyException;
import java.util.Optional;

/**
 * A GZIP file that cannot be restored, where {@code readGzip} is set: its value is longer than
 * {@code maxDecompressedSize}, or there is no memory for it. With {@link
 * dev.snugly.core.OnUndecodable#RAW} the file is returned instead.
 */
public final class UndecodableGzipException extends SnuglyException {
  private static final long serialVersionUID = 1L;

  private final byte[] stored;
  private final byte[] key;

  UndecodableGzipException(byte[] stored, byte[] key, String why) {
    super("cannot decode a GZIP file of " + stored.length + " bytes: " + why);
    this.stored = stored;
    this.key = key;
  }

  /** Returns the key that it was read from, if that is known. */
  public Optional<byte[]> key() {
    return Optional.ofNullable(key).map(byte[]::clone);
  }

  /** Returns the bytes as the server has them. */
  public byte[] stored() {
    return stored.clone();
  }
}
