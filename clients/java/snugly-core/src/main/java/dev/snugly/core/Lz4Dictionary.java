package dev.snugly.core;

import net.jpountz.xxhash.XXHash32;
import net.jpountz.xxhash.XXHashFactory;

/**
 * LZ4 with a dictionary: the dictionary's ID, the value's length and its xxh32 as u32, then one raw
 * block. The block says nothing of its dictionary, and decodes with another one into other bytes.
 */
final class Lz4Dictionary {
  /** Length of what is in front of the block, in bytes. */
  static final int HEAD_BYTES = 3 * Integer.BYTES;

  private static final int SIZE_AT = Integer.BYTES;
  private static final int CHECKSUM_AT = 2 * Integer.BYTES;
  private static final XXHash32 CHECKSUM = XXHashFactory.fastestInstance().hash32();

  private Lz4Dictionary() {}

  /**
   * Compresses a value to a place in the target, and returns how many bytes it has become.
   *
   * @param level below 0 it is acceleration; those above 0 are as 0
   */
  static int compress(
      Workspace workspace, int level, Dictionary dictionary, Bytes value, Bytes target, int at) {
    int size = value.size();
    byte[] from = value.array != null ? value.array : value.copy();
    int start = value.array != null ? value.start : 0;
    target.putInt(at, dictionary.id());
    target.putInt(at + SIZE_AT, size);
    target.putInt(at + CHECKSUM_AT, CHECKSUM.hash(from, start, size, 0));
    int block = at + HEAD_BYTES;
    Lz4DictionaryEncoder encoder = workspace.lz4Dictionary();
    Lz4DictionaryTable table = dictionary.lz4();
    int acceleration = Math.max(-level, 1);
    if (target.array != null) {
      int end = encoder.encode(table, acceleration, from, start, start + size, target.array, block);
      return end - at;
    }
    byte[] draft = workspace.scratch(Codec.maxEncodedSize(size));
    int length = encoder.encode(table, acceleration, from, start, start + size, draft, 0);
    target.direct.put(block, draft, 0, length);
    return HEAD_BYTES + length;
  }

  /** The ID of the dictionary that the payload needs, unsigned. */
  static int dictionary(Bytes bytes, int payload) throws Fault {
    if (bytes.end - payload <= HEAD_BYTES) {
      throw Fault.corrupt(
          "the dictionary's ID, the length or the checksum is cut off, or no block follows");
    }
    int id = bytes.getInt(payload);
    if (Integer.toUnsignedLong(id) < Dictionary.FIRST_ID) {
      throw Fault.corrupt("no dictionary has the ID " + id);
    }
    return id;
  }

  /** The length that a payload claims for its value, in bytes; it has a {@link #dictionary}. */
  static long claimedSize(Bytes bytes, int payload) {
    return Integer.toUnsignedLong(bytes.getInt(payload + SIZE_AT));
  }

  /**
   * Looks at all that is known without the dictionary, so that none is fetched in vain.
   *
   * @return the dictionary's ID, unsigned
   */
  static int check(Bytes bytes, int payload, Limit limit) throws Fault {
    int id = dictionary(bytes, payload);
    Lz4.check(claimedSize(bytes, payload), bytes.end - payload - HEAD_BYTES, limit);
    return id;
  }

  /** The value in the payload between {@code payload} and the end, which was {@link #check}ed. */
  static byte[] decompress(Bytes bytes, int payload, Dictionary dictionary) throws Fault {
    byte[] value = Zstd.room(claimedSize(bytes, payload));
    byte[] stored = bytes.array != null ? bytes.array : bytes.copy();
    int moved = bytes.array != null ? 0 : bytes.start;
    int block = payload + HEAD_BYTES - moved;
    int end = bytes.end - moved;
    int size;
    try {
      size = Lz4DictionaryDecoder.decode(stored, block, end, dictionary.content(), value);
    } catch (Fault damage) {
      throw damaged(damage.getMessage(), value, dictionary);
    }
    if (size != value.length) {
      throw damaged("its block holds " + size, value, dictionary);
    }
    int checksum = CHECKSUM.hash(value, 0, size, 0);
    if (checksum != bytes.getInt(payload + CHECKSUM_AT)) {
      throw damaged("they have another checksum", value, dictionary);
    }
    return value;
  }

  private static Fault damaged(String why, byte[] value, Dictionary dictionary) {
    return Fault.corrupt(
        "it claims " + value.length + " bytes with the " + dictionary + ", but " + why);
  }
}
