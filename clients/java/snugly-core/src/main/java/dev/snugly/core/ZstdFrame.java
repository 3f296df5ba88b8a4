package dev.snugly.core;

/**
 * The structure of a zstd frame (RFC 8878, section 3.1.1), read without decoding it.
 *
 * <p>Reading it first gives the dictionary's ID, the claimed size, a bound on the real one, and the
 * certainty that there is exactly one frame and nothing behind it.
 */
final class ZstdFrame {
  private static final int MAGIC = 0xFD2FB528;
  private static final int CHECKSUM_BYTES = 4;
  private static final int BLOCK_HEADER_BYTES = 3;

  /** Block_Maximum_Size is the window's size, and never more than this. */
  private static final long MAX_BLOCK = 128 << 10;

  /** ZSTD_WINDOWLOG_MAX of libzstd on 64-bit machines. */
  private static final int MAX_WINDOW_LOG = 31;

  private static final String CUT = "the frame is cut off";

  /** Whether the header claims a size for the value. */
  final boolean claimsSize;

  /** The claimed size, unsigned. */
  final long contentSize;

  /** Dictionary_ID, unsigned; 0 if the header has none. */
  final int dictionary;

  private final long window;
  private final boolean hasChecksum;

  /** Offset of the first block. */
  private final int end;

  private ZstdFrame(
      boolean claimsSize,
      long contentSize,
      int dictionary,
      long window,
      boolean hasChecksum,
      int end) {
    this.claimsSize = claimsSize;
    this.contentSize = contentSize;
    this.dictionary = dictionary;
    this.window = window;
    this.hasChecksum = hasChecksum;
    this.end = end;
  }

  /** Reads the header of the frame that lies from {@code start} to the end. */
  static ZstdFrame header(Bytes bytes, int start) throws Fault {
    int limit = bytes.end;
    if (limit - start < 5) {
      throw Fault.corrupt(CUT);
    }
    if (bytes.getInt(start) != MAGIC) {
      throw Fault.corrupt("no zstd frame starts here");
    }
    int descriptor = bytes.get(start + 4);
    if ((descriptor & 0b1000) != 0) {
      throw Fault.corrupt("the frame header uses a reserved bit");
    }
    boolean isSingleSegment = (descriptor & 0b10_0000) != 0;
    int dictionaryBytes = (1 << (descriptor & 0b11)) >> 1;
    int sizeFlag = (descriptor >> 6) & 0b11;
    boolean claimsSize = isSingleSegment || sizeFlag != 0;
    int sizeBytes = claimsSize ? 1 << sizeFlag : 0;
    int at = start + 5;
    if (limit - at < (isSingleSegment ? 0 : 1) + dictionaryBytes + sizeBytes) {
      throw Fault.corrupt(CUT);
    }
    long window = 0;
    if (!isSingleSegment) {
      window = window(bytes.get(at));
      at++;
    }
    int dictionary = (int) bytes.number(at, dictionaryBytes);
    at += dictionaryBytes;
    long contentSize = bytes.number(at, sizeBytes) + (sizeBytes == 2 ? 256 : 0);
    at += sizeBytes;
    boolean hasChecksum = (descriptor & 0b100) != 0;
    return new ZstdFrame(
        claimsSize,
        contentSize,
        dictionary,
        isSingleSegment ? contentSize : window,
        hasChecksum,
        at);
  }

  /**
   * Walks over the blocks: returns the most that the frame can decode to, in bytes, if it is all
   * there and nothing follows it.
   */
  long reach(Bytes bytes) throws Fault {
    long maxBlock = Long.compareUnsigned(window, MAX_BLOCK) < 0 ? window : MAX_BLOCK;
    int limit = bytes.end;
    int at = end;
    long reach = 0;
    boolean isLast = false;
    while (!isLast) {
      if (limit - at < BLOCK_HEADER_BYTES) {
        throw Fault.corrupt(CUT);
      }
      int block = (int) bytes.number(at, BLOCK_HEADER_BYTES);
      at += BLOCK_HEADER_BYTES;
      isLast = (block & 1) != 0;
      int size = block >>> 3;
      int type = (block >> 1) & 0b11;
      if (type == 3) {
        throw Fault.corrupt("a block of the reserved type");
      }
      if (size > maxBlock) {
        throw Fault.corrupt("a block larger than the window allows");
      }
      int stored = type == 1 ? 1 : size;
      if (limit - at < stored) {
        throw Fault.corrupt(CUT);
      }
      at += stored;
      reach += type == 2 ? maxBlock : size;
    }
    int rest = limit - at - (hasChecksum ? CHECKSUM_BYTES : 0);
    if (rest != 0) {
      throw Fault.corrupt(rest < 0 ? CUT : "bytes after the end of the frame");
    }
    return reach;
  }

  private static long window(int descriptor) throws Fault {
    int log = 10 + (descriptor >> 3);
    if (log > MAX_WINDOW_LOG) {
      throw Fault.corrupt("the window is larger than zstd allows");
    }
    long base = 1L << log;
    return base + base / 8 * (descriptor & 0b111);
  }
}
