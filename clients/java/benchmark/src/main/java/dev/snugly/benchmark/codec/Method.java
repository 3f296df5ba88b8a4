package dev.snugly.benchmark.codec;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdCompressCtx;
import com.github.luben.zstd.ZstdDecompressCtx;
import dev.snugly.benchmark.data.Dictionaries;
import dev.snugly.core.Codec;
import dev.snugly.core.CompressionBackend;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Dictionary;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import net.jpountz.lz4.LZ4Compressor;
import net.jpountz.lz4.LZ4Factory;
import net.jpountz.lz4.LZ4SafeDecompressor;

/** A way of encoding and decoding. Each gives an array of its own, or fills the buffer given. */
interface Method {
  byte[] encode(byte[] value);

  byte[] decode(byte[] stored, int size);

  /** From one direct buffer to another, from 0 on; returns how many bytes there are. */
  default int encode(ByteBuffer value, ByteBuffer target) {
    throw new UnsupportedOperationException("only zstd is measured with buffers");
  }

  /**
   * A way by its name.
   *
   * @param name {@code snugly}, {@code dictionary}, {@code bare}, {@code gzip} or {@code copy}
   * @param backend zstd or lz4, for the first three
   */
  static Method of(String name, CompressionBackend backend, int level) {
    return switch (name) {
      case "snugly" -> new Snugly(backend, level, null);
      case "dictionary" -> new Snugly(backend, level, Dictionaries.trained(Values.samples()));
      case "bare" -> backend == CompressionBackend.ZSTD ? new BareZstd(level) : new BareLz4(level);
      case "gzip" -> new Gzip();
      case "copy" -> new Copy();
      default -> throw new IllegalArgumentException("there is no way called " + name);
    };
  }

  /** The library, with a dictionary or null. */
  final class Snugly implements Method {
    private final Codec codec;

    Snugly(CompressionBackend backend, int level, Dictionary dictionary) {
      codec =
          new Codec(
              CompressionConfiguration.builder()
                  .backend(backend)
                  .compressionLevel(level)
                  .dictionary(dictionary)
                  .build());
    }

    @Override
    public byte[] encode(byte[] value) {
      return codec.encode(value);
    }

    @Override
    public byte[] decode(byte[] stored, int size) {
      return codec.decode(stored);
    }

    @Override
    public int encode(ByteBuffer value, ByteBuffer target) {
      codec.encode(value.clear(), null, target.clear());
      return target.position();
    }
  }

  /** zstd-jni with contexts and a buffer that are used again; readers know the size. */
  final class BareZstd implements Method {
    private final ZstdCompressCtx compressing = new ZstdCompressCtx();
    private final ZstdDecompressCtx decompressing = new ZstdDecompressCtx();
    private byte[] room = new byte[0];
    private int longest;

    BareZstd(int level) {
      compressing.setLevel(level);
    }

    @Override
    public byte[] encode(byte[] value) {
      if (longest < value.length) {
        longest = value.length;
        room = new byte[(int) Zstd.compressBound(longest)];
      }
      int size = compressing.compressByteArray(room, 0, room.length, value, 0, value.length);
      return Arrays.copyOf(room, size);
    }

    @Override
    public byte[] decode(byte[] stored, int size) {
      byte[] value = new byte[size];
      decompressing.decompressByteArray(value, 0, size, stored, 0, stored.length);
      return value;
    }

    @Override
    public int encode(ByteBuffer value, ByteBuffer target) {
      return compressing.compressDirectByteBuffer(
          target, 0, target.capacity(), value, 0, value.capacity());
    }
  }

  /** lz4-java with a compressor and a buffer that are used again; readers know the size. */
  final class BareLz4 implements Method {
    private final LZ4Compressor compressing;
    private final LZ4SafeDecompressor decompressing =
        LZ4Factory.nativeInstance().safeDecompressor();
    private byte[] room = new byte[0];

    BareLz4(int level) {
      LZ4Factory factory = LZ4Factory.nativeInstance();
      compressing =
          level > 0
              ? factory.highFastResetCompressor(level)
              : factory.fastResetCompressor(Math.max(-level, 1));
    }

    @Override
    public byte[] encode(byte[] value) {
      int most = compressing.maxCompressedLength(value.length);
      if (room.length < most) {
        room = new byte[most];
      }
      int size = compressing.compress(value, 0, value.length, room, 0, room.length);
      return Arrays.copyOf(room, size);
    }

    @Override
    public byte[] decode(byte[] stored, int size) {
      byte[] value = new byte[size];
      decompressing.decompress(stored, 0, stored.length, value, 0, size);
      return value;
    }
  }

  /** Lettuce's own compression. */
  final class Gzip implements Method {
    @Override
    public byte[] encode(byte[] value) {
      ByteArrayOutputStream stored = new ByteArrayOutputStream(value.length / 2);
      try (GZIPOutputStream gzip = new GZIPOutputStream(stored)) {
        gzip.write(value);
      } catch (IOException error) {
        throw new IllegalStateException(error);
      }
      return stored.toByteArray();
    }

    @Override
    public byte[] decode(byte[] stored, int size) {
      try (GZIPInputStream gzip = new GZIPInputStream(new ByteArrayInputStream(stored))) {
        return gzip.readAllBytes();
      } catch (IOException error) {
        throw new IllegalStateException(error);
      }
    }
  }

  /** Nothing but a copy. */
  final class Copy implements Method {
    @Override
    public byte[] encode(byte[] value) {
      return value.clone();
    }

    @Override
    public byte[] decode(byte[] stored, int size) {
      return stored.clone();
    }
  }
}
