package dev.snugly.core;

import com.github.luben.zstd.ZstdCompressCtx;
import com.github.luben.zstd.ZstdDecompressCtx;
import com.github.luben.zstd.ZstdException;

/** zstd: one frame a value, in one call, with a context that is used again. */
final class Zstd {
  private Zstd() {}

  /**
   * Compresses a value to a place in the target, and returns how many bytes it has become.
   *
   * @throws RuntimeException that of the library
   */
  static int compress(
      Workspace workspace,
      int level,
      boolean checksum,
      Dictionary dictionary,
      Bytes value,
      Bytes target,
      int at) {
    int size = value.size();
    try {
      ZstdCompressCtx context = workspace.compressor(level, checksum, dictionary);
      // The library wants both in arrays or both direct.
      if (value.direct != null && target.direct != null) {
        return context.compressDirectByteBuffer(
            target.direct, at, target.end - at, value.direct, value.start, size);
      }
      byte[] from = value.array != null ? value.array : value.copy();
      int fromAt = value.array != null ? value.start : 0;
      if (target.array != null) {
        return context.compressByteArray(target.array, at, target.end - at, from, fromAt, size);
      }
      byte[] draft = workspace.scratch(Codec.maxEncodedSize(size));
      int written = context.compressByteArray(draft, 0, draft.length, from, fromAt, size);
      target.direct.put(at, draft, 0, written);
      return written;
    } catch (RuntimeException error) {
      workspace.discardCompressors();
      throw error;
    } finally {
      workspace.compressed(size, level);
    }
  }

  /**
   * The value in the one frame between {@code start} and the end.
   *
   * @param dictionary the one that the frame needs, or null
   */
  static byte[] decompress(
      Workspace workspace,
      Bytes bytes,
      int start,
      ZstdFrame frame,
      long reach,
      Dictionary dictionary,
      Limit limit)
      throws Fault {
    ZstdDecompressCtx context = workspace.decompressor(dictionary);
    if (!frame.claimsSize) {
      return decompressUnclaimed(workspace, context, bytes, start, reach, limit);
    }
    if (Long.compareUnsigned(frame.contentSize, limit.bytes()) > 0) {
      String claim = Long.toUnsignedString(frame.contentSize);
      throw Fault.tooLarge("it claims " + claim + " bytes", limit);
    }
    if (frame.contentSize > reach) {
      throw Fault.corrupt(
          "it claims " + frame.contentSize + " bytes and cannot hold more than " + reach);
    }
    byte[] value = room(frame.contentSize);
    int size;
    try {
      size = decompress(context, bytes, start, value, value.length);
    } catch (ZstdException error) {
      throw Fault.corrupt(error.getMessage(), error);
    }
    // libzstd does not even look at the blocks of a frame that claims nothing.
    if (size != value.length || (size == 0 && reach > 0)) {
      throw Fault.corrupt("it claims " + value.length + " bytes and holds others");
    }
    return value;
  }

  private static byte[] decompressUnclaimed(
      Workspace workspace,
      ZstdDecompressCtx context,
      Bytes bytes,
      int start,
      long reach,
      Limit limit)
      throws Fault {
    int most = (int) Math.min(reach, limit.bytes());
    byte[] room;
    try {
      room = workspace.scratch(most);
    } catch (OutOfMemoryError error) {
      throw Fault.outOfMemory(most + " bytes", error);
    }
    int size;
    try {
      size = decompress(context, bytes, start, room, most);
    } catch (ZstdException error) {
      boolean isFull =
          error.getErrorCode() == com.github.luben.zstd.Zstd.errDstSizeTooSmall()
              && reach > limit.bytes();
      throw isFull
          ? Fault.tooLarge("it holds more than " + limit.bytes() + " bytes", limit)
          : Fault.corrupt(error.getMessage(), error);
    }
    byte[] value = room(size);
    System.arraycopy(room, 0, value, 0, size);
    return value;
  }

  private static int decompress(
      ZstdDecompressCtx context, Bytes bytes, int start, byte[] target, int room) {
    int size = bytes.end - start;
    return bytes.array != null
        ? context.decompressByteArray(target, 0, room, bytes.array, start, size)
        : context.decompressDirectByteBufferToByteArray(target, 0, room, bytes.direct, start, size);
  }

  /** An array of a size that is within the limit and within reach. */
  static byte[] room(long size) throws Fault {
    try {
      return new byte[(int) size];
    } catch (OutOfMemoryError error) {
      throw Fault.outOfMemory(size + " bytes", error);
    }
  }
}
