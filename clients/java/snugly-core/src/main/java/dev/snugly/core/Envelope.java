package dev.snugly.core;

import java.util.Optional;
import java.util.OptionalLong;

/**
 * Claims of the first bytes of an envelope, true or not.
 *
 * @param backend the backend's number, from 0 to 255
 * @param encoding how the payload is encoded; empty for a backend that this version does not know
 * @param size the length that is claimed for the value, in bytes, unsigned; zstd frames need not
 *     claim one
 * @param dictionary the ID of the dictionary that is needed, from 1 to 2^32 - 1
 */
public record Envelope(
    int backend, Optional<Encoding> encoding, OptionalLong size, OptionalLong dictionary) {

  /** Length of what is in front of the payload, in bytes. */
  public static final int HEADER_BYTES = 5;

  /** Offset of the backend's number. */
  static final int BACKEND_AT = 4;

  /** Magic and version, as they are read in little-endian order. */
  private static final int START = 0x00_02_01_00;

  /**
   * Looks at stored bytes without decoding them.
   *
   * @param stored what a server has
   * @return what the envelope says of itself; empty if the bytes are no envelope
   */
  public static Optional<Envelope> inspect(byte[] stored) {
    Bytes bytes = Bytes.of(stored, stored.length);
    int backend = backendOf(bytes);
    if (backend < 0) {
      return Optional.empty();
    }
    Optional<Encoding> encoding = Optional.ofNullable(Encoding.ofBackend(backend));
    OptionalLong size = OptionalLong.empty();
    OptionalLong dictionary = OptionalLong.empty();
    try {
      if (encoding.isPresent() && encoding.get() == Encoding.LZ4) {
        size = OptionalLong.of(Lz4.claimedSize(bytes, HEADER_BYTES));
      } else if (encoding.isPresent() && encoding.get() == Encoding.LZ4_DICTIONARY) {
        int id = Lz4Dictionary.dictionary(bytes, HEADER_BYTES);
        dictionary = OptionalLong.of(Integer.toUnsignedLong(id));
        size = OptionalLong.of(Lz4Dictionary.claimedSize(bytes, HEADER_BYTES));
      } else if (encoding.isPresent()) {
        ZstdFrame frame = ZstdFrame.header(bytes, HEADER_BYTES);
        size = frame.claimsSize ? OptionalLong.of(frame.contentSize) : size;
        dictionary =
            frame.dictionary != 0
                ? OptionalLong.of(Integer.toUnsignedLong(frame.dictionary))
                : dictionary;
      }
    } catch (Fault damaged) {
      // It says nothing then.
    }
    return Optional.of(new Envelope(backend, encoding, size, dictionary));
  }

  /** The ID of the dictionary that is looked for to read the envelope, unsigned; 0 for none. */
  static int dictionaryOf(Bytes bytes, Limit limit) {
    int backend = backendOf(bytes);
    Encoding encoding = backend < 0 ? null : Encoding.ofBackend(backend);
    if (encoding == null || !encoding.needsDictionary()) {
      return 0;
    }
    int payload = bytes.start + HEADER_BYTES;
    try {
      return encoding == Encoding.LZ4_DICTIONARY
          ? Lz4Dictionary.check(bytes, payload, limit)
          : ZstdFrame.header(bytes, payload).dictionary;
    } catch (Fault damaged) {
      return 0;
    }
  }

  /**
   * Returns the backend's number if the bytes count as an envelope, else -1: then 00 01 02 is the
   * start of somebody's own data.
   */
  static int backendOf(Bytes value) {
    int start = value.start;
    // The first byte alone, which is cheaper to read, tells most values from envelopes.
    if (value.size() < HEADER_BYTES || value.get(start) != 0 || value.getInt(start) != START) {
      return -1;
    }
    int backend = value.get(start + BACKEND_AT);
    boolean counts = (backend >= 0x01 && backend <= 0x1F) || (backend >= 0x80 && backend <= 0x9F);
    return counts ? backend : -1;
  }

  /**
   * Whether an envelope of this backend starts as it must; the rest is seen only by decoding it.
   */
  static boolean isWellFormed(Bytes value, int backend, Limit limit) {
    Encoding encoding = Encoding.ofBackend(backend);
    if (encoding == null) {
      return false;
    }
    int payload = value.start + HEADER_BYTES;
    try {
      if (encoding == Encoding.LZ4) {
        Lz4.check(value, payload, limit);
        return true;
      }
      if (encoding == Encoding.LZ4_DICTIONARY) {
        Lz4Dictionary.check(value, payload, limit);
        return true;
      }
      ZstdFrame frame = ZstdFrame.header(value, payload);
      return encoding == Encoding.ZSTD || frame.dictionary != 0;
    } catch (Fault damaged) {
      return false;
    }
  }

  /** Puts the header of this encoding's envelopes at a place. */
  static void putHeader(Bytes target, int at, Encoding encoding) {
    target.putInt(at, START);
    target.put(at + BACKEND_AT, encoding.backend);
  }
}
