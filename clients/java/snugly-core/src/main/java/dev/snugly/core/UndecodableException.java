package dev.snugly.core;

import java.util.Locale;
import java.util.Optional;

/**
 * A value that was stored compressed, in an envelope or where that is set as a GZIP file, and
 * cannot be read. With {@link OnUndecodable#RAW} the stored bytes are returned instead.
 */
public final class UndecodableException extends SnuglyException {
  private static final long serialVersionUID = 1L;

  /** Kinds of what is wrong. */
  public enum Kind {
    /** It counts as an envelope, but its backend is unknown: a newer client may have written it. */
    UNKNOWN_BACKEND,
    /** It is cut, damaged, followed by bytes, or does not decode to what it claims. */
    CORRUPT,
    /** Its dictionary is not at hand. */
    DICTIONARY_MISSING,
    /** The value is, or claims to be, longer than {@code maxDecompressedSize}. */
    TOO_LARGE,
    /** There is no memory for the value. */
    OUT_OF_MEMORY;

    /** Returns the name in the specification, such as {@code unknown_backend}. */
    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  private final Kind kind;
  private final byte[] key;
  private final int backend;
  private final byte[] stored;
  private final int dictionary;

  UndecodableException(Fault fault, byte[] key, byte[] stored) {
    super(message(fault, key, stored), fault.getCause());
    this.kind = fault.kind;
    this.key = key;
    this.backend = Gzip.begins(stored) ? -1 : Byte.toUnsignedInt(stored[Envelope.BACKEND_AT]);
    this.stored = stored;
    this.dictionary = fault.dictionary;
  }

  /** The text of an error. */
  static String message(Fault fault, byte[] key, byte[] stored) {
    return String.format(
        Locale.ROOT,
        "cannot decode %s of %d bytes%s%s: %s",
        Gzip.begins(stored) ? "a GZIP file" : "an envelope",
        stored.length,
        Gzip.begins(stored) ? "" : ", backend %02x".formatted(stored[Envelope.BACKEND_AT]),
        key == null ? "" : ", at key \"" + Printable.of(key) + "\"",
        fault.getMessage());
  }

  /** Returns what is wrong. */
  public Kind kind() {
    return kind;
  }

  /** Returns the key that it was read from, if that is known. */
  public Optional<byte[]> key() {
    return Optional.ofNullable(key);
  }

  /** Returns the number of the backend in the envelope, from 0 to 255; -1 for a GZIP file. */
  public int backend() {
    return backend;
  }

  /** Returns the bytes as the server has them. */
  public byte[] stored() {
    return stored.clone();
  }

  /** Returns the ID of the dictionary that is missing, as an unsigned number; 0 if none is. */
  public int dictionary() {
    return dictionary;
  }
}
