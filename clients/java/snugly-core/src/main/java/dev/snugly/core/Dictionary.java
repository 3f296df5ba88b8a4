package dev.snugly.core;

import com.github.luben.zstd.ZstdDictCompress;
import com.github.luben.zstd.ZstdDictContentType;
import com.github.luben.zstd.ZstdDictDecompress;
import dev.snugly.core.DictionaryException.Kind;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import net.jpountz.xxhash.XXHashFactory;

/**
 * A full zstd dictionary (RFC 8878, section 5): what many small values have in common, known to
 * those who write and to those who read. Its ID is that of its content ({@code
 * spec/dictionaries.md}).
 *
 * <p>It is immutable, and may be used by any number of threads. {@code snugly train} makes some.
 */
public final class Dictionary {
  /** The longest that is accepted, in bytes. */
  public static final int MAX_BYTES = 1 << 20;

  private static final int MAGIC = 0xEC30A437;

  /** Magic number and ID, in bytes. */
  private static final int HEADER_BYTES = 8;

  /** Smaller IDs, and those from 2^31 on, are reserved (RFC 8878, section 5). */
  static final long FIRST_ID = 32_768;

  private static final long END_OF_IDS = 1L << 31;

  private final int id;
  private final byte[] bytes;
  private final ZstdDictDecompress decompressing;
  private final Map<Integer, ZstdDictCompress> compressing = new ConcurrentHashMap<>();

  private volatile Lz4DictionaryTable lz4;

  private Dictionary(int id, byte[] bytes) {
    this.id = id;
    this.bytes = bytes;
    try {
      this.decompressing = new ZstdDictDecompress(bytes, ZstdDictContentType.FULL_DICT);
    } catch (RuntimeException error) {
      throw new DictionaryException(
          Kind.NOT_A_DICTIONARY, "the dictionary is corrupt: zstd cannot load its tables", error);
    }
  }

  /**
   * Loads a dictionary.
   *
   * @param bytes all of it
   * @return the dictionary
   * @throws DictionaryException for what is none, has another ID than its content, or is over
   *     {@link #MAX_BYTES}
   */
  public static Dictionary of(byte[] bytes) {
    if (bytes.length > MAX_BYTES) {
      throw new DictionaryException(
          Kind.TOO_LARGE,
          "a dictionary of "
              + bytes.length
              + " bytes is too large: at most "
              + MAX_BYTES
              + " are accepted");
    }
    ByteBuffer header = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    if (bytes.length < HEADER_BYTES || header.getInt(0) != MAGIC) {
      throw new DictionaryException(
          Kind.NOT_A_DICTIONARY,
          "not a zstd dictionary: it must start with the dictionary magic number 37 a4 30 ec");
    }
    int declared = header.getInt(4);
    int id = idOf(bytes);
    if (declared != id) {
      throw new DictionaryException(
          Kind.WRONG_ID,
          "the dictionary says that its ID is "
              + Integer.toUnsignedString(declared)
              + ", but its content has the ID "
              + id
              + ": it is not what was published, or was not trained by snugly");
    }
    return new Dictionary(id, bytes.clone());
  }

  /**
   * Loads a dictionary from a file.
   *
   * @param path the file
   * @return the dictionary
   * @throws DictionaryException as {@link #of(byte[])}, and for what cannot be read
   */
  public static Dictionary load(Path path) {
    byte[] bytes;
    try {
      bytes = Files.readAllBytes(path);
    } catch (IOException error) {
      throw new DictionaryException(
          Kind.NOT_A_DICTIONARY, "the dictionary " + path + " cannot be read: " + error, error);
    }
    try {
      return of(bytes);
    } catch (DictionaryException error) {
      throw new DictionaryException(
          error.kind(), path + " cannot be used as a dictionary: " + error.getMessage(), error);
    }
  }

  /** The ID that a dictionary with this content must have; there is at least a header. */
  static int idOf(byte[] bytes) {
    long hash =
        XXHashFactory.fastestInstance()
            .hash64()
            .hash(bytes, HEADER_BYTES, bytes.length - HEADER_BYTES, 0);
    return (int) (FIRST_ID + Long.remainderUnsigned(hash, END_OF_IDS - FIRST_ID));
  }

  /** Returns the ID, computed from the content: from 32,768 to 2^31 - 1. */
  public int id() {
    return id;
  }

  /** Returns the whole dictionary, to be kept in a file or beside the data. */
  public byte[] bytes() {
    return bytes.clone();
  }

  /** All of it, to be read only. */
  byte[] content() {
    return bytes;
  }

  /** The tables for reading zstd. */
  ZstdDictDecompress decompressing() {
    return decompressing;
  }

  /** The tables for writing zstd at this level, which are made when they are asked for first. */
  ZstdDictCompress compressing(int level) {
    return compressing.computeIfAbsent(level, each -> new ZstdDictCompress(bytes, each));
  }

  /** The table for writing LZ4, which is made when it is asked for first. */
  Lz4DictionaryTable lz4() {
    Lz4DictionaryTable table = lz4;
    if (table == null) {
      synchronized (bytes) {
        table = lz4 == null ? new Lz4DictionaryTable(bytes) : lz4;
        lz4 = table;
      }
    }
    return table;
  }

  /** Whether the other one is a dictionary of the same bytes. */
  @Override
  public boolean equals(Object other) {
    return other instanceof Dictionary dictionary
        && id == dictionary.id
        && Arrays.equals(bytes, dictionary.bytes);
  }

  /** Returns the ID. */
  @Override
  public int hashCode() {
    return id;
  }

  /** Returns the ID and the length, for people. */
  @Override
  public String toString() {
    return "dictionary " + id + " of " + bytes.length + " bytes";
  }
}
