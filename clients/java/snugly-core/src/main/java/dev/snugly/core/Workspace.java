package dev.snugly.core;

import com.github.luben.zstd.ZstdCompressCtx;
import com.github.luben.zstd.ZstdDecompressCtx;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Objects;
import net.jpountz.lz4.LZ4Compressor;

/**
 * Resources for encoding and decoding one value: contexts and a buffer, which are used again. One
 * thread at a time holds it.
 */
final class Workspace {
  /** Longer buffers are not kept, in bytes. */
  private static final int MAX_KEPT_SCRATCH = 1 << 20;

  /**
   * A context stays below about 12 MiB up to this level and this length of values (level 3 needs
   * 1.3 MiB). What is larger takes hundreds of times longer to compress than a new context to make.
   */
  private static final int MAX_KEPT_LEVEL = 12;

  private static final int MAX_KEPT_VALUE = 16 << 20;
  private static final int LARGE_VALUE = 64 << 10;

  /**
   * One operation in so many is timed, and stands for all of them. A prime, so that encoding and
   * decoding that take turns are both timed, and attempts at values that hardly ever shrink, one in
   * 16 or 64, as often as what is between them.
   */
  static final int TIMED = 61;

  private static final byte[] NOTHING = {};
  private static final VarHandle BUSY;

  static {
    try {
      BUSY = MethodHandles.lookup().findVarHandle(Workspace.class, "busy", boolean.class);
    } catch (ReflectiveOperationException error) {
      throw new ExceptionInInitializerError(error);
    }
  }

  /** Its number among {@link Workspaces}, or their count for one that is thrown away. */
  final int index;

  private boolean busy;
  // Not the first operation, which makes the contexts.
  private int untilTimed = TIMED / 2;
  private byte[] scratch = NOTHING;

  private Compressing compressing;
  // Contexts of their own, so that what is without a dictionary never sees one.
  private Compressing compressingWith;
  private ZstdDecompressCtx decompressing;
  private ZstdDecompressCtx decompressingWith;
  private Dictionary decompressingDictionary;

  private LZ4Compressor lz4;
  private int lz4Level;
  private Lz4DictionaryEncoder lz4Dictionary;

  Workspace(int index) {
    this.index = index;
  }

  boolean tryAcquire() {
    return !busy && BUSY.compareAndSet(this, false, true);
  }

  /** Gives it back. */
  void release() {
    if (scratch.length > MAX_KEPT_SCRATCH) {
      scratch = NOTHING;
    }
    if (index == Workspaces.COUNT) {
      close();
    } else {
      BUSY.setRelease(this, false);
    }
  }

  /** Whether the operation that begins is one that is timed. */
  boolean isTimed() {
    if (--untilTimed > 0) {
      return false;
    }
    untilTimed = TIMED;
    return true;
  }

  /** An array of at least this size, whose content is anything until it is released. */
  byte[] scratch(int size) {
    if (scratch.length < size) {
      boolean isKept = size <= MAX_KEPT_SCRATCH;
      scratch = new byte[isKept ? Math.max(Integer.highestOneBit(size - 1) << 1, 1 << 12) : size];
    }
    return scratch;
  }

  /** The context for zstd at this level, with or without a dictionary. */
  ZstdCompressCtx compressor(int level, boolean checksum, Dictionary dictionary) {
    if (dictionary == null) {
      if (compressing == null) {
        compressing = new Compressing();
      }
      return compressing.set(level, checksum, null);
    }
    if (compressingWith == null) {
      compressingWith = new Compressing();
    }
    return compressingWith.set(level, checksum, dictionary);
  }

  /** Notes that a value was compressed: a context that it made large is thrown away. */
  void compressed(int size, int level) {
    if (size >= LARGE_VALUE && (level > MAX_KEPT_LEVEL || size > MAX_KEPT_VALUE)) {
      discardCompressors();
    }
  }

  /** Throws away the contexts for compressing: libzstd may leave one in the middle of a frame. */
  void discardCompressors() {
    if (compressing != null) {
      compressing.context.close();
    }
    if (compressingWith != null) {
      compressingWith.context.close();
    }
    compressing = null;
    compressingWith = null;
  }

  /** The context for reading zstd, with or without a dictionary. */
  ZstdDecompressCtx decompressor(Dictionary dictionary) {
    if (dictionary == null) {
      if (decompressing == null) {
        decompressing = new ZstdDecompressCtx();
      }
      return decompressing;
    }
    if (decompressingWith == null) {
      decompressingWith = new ZstdDecompressCtx();
    }
    if (!Objects.equals(decompressingDictionary, dictionary)) {
      decompressingDictionary = null;
      decompressingWith.loadDict(dictionary.decompressing());
      decompressingDictionary = dictionary;
    }
    return decompressingWith;
  }

  /** The compressor for LZ4 at this level. */
  LZ4Compressor lz4(int level) {
    if (lz4 == null || lz4Level != level) {
      closeLz4();
      lz4 = Lz4.compressor(level);
      lz4Level = level;
    }
    return lz4;
  }

  /** What encodes LZ4 with dictionaries. */
  Lz4DictionaryEncoder lz4Dictionary() {
    if (lz4Dictionary == null) {
      lz4Dictionary = new Lz4DictionaryEncoder();
    }
    return lz4Dictionary;
  }

  private void closeLz4() {
    if (lz4 != null) {
      Lz4.close(lz4);
    }
    lz4 = null;
  }

  private void close() {
    discardCompressors();
    if (decompressing != null) {
      decompressing.close();
    }
    if (decompressingWith != null) {
      decompressingWith.close();
    }
    closeLz4();
  }

  /** A context for compressing, and what it remembers from frame to frame. */
  private static final class Compressing {
    private final ZstdCompressCtx context = new ZstdCompressCtx();
    private int level = CompressionBackend.ZSTD.defaultLevel();
    private boolean checksum;
    private Dictionary dictionary;

    Compressing() {
      context.setLevel(level);
      context.setContentSize(true);
      context.setChecksum(false);
    }

    ZstdCompressCtx set(int level, boolean checksum, Dictionary dictionary) {
      if (this.checksum != checksum) {
        context.setChecksum(checksum);
        this.checksum = checksum;
      }
      boolean isOtherLevel = this.level != level;
      if (isOtherLevel && dictionary == null) {
        context.setLevel(level);
      }
      if (dictionary != null && (isOtherLevel || !Objects.equals(this.dictionary, dictionary))) {
        context.loadDict(dictionary.compressing(level));
      }
      this.level = level;
      this.dictionary = dictionary;
      return context;
    }
  }
}
