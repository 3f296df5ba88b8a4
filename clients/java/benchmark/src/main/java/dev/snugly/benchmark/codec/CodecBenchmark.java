package dev.snugly.benchmark.codec;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionBackend;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/** Values of many sizes, by every way of encoding; all parameters can be narrowed. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(2)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class CodecBenchmark {
  /** The way of encoding. */
  @Param({"bare", "snugly", "dictionary", "gzip", "copy"})
  public String method;

  /** The backend and the level of snugly, with a dictionary too, and of the bare libraries. */
  @Param({"zstd:-1", "zstd:3", "lz4:0"})
  public String level;

  /** The values. */
  @Param({"json", "random"})
  public String values;

  /** The length of a value, in bytes. */
  @Param({"64", "512", "1024", "8192", "65536", "524288", "4194304"})
  public int size;

  private Method chosen;
  private byte[] value;
  private byte[] stored;
  private ByteBuffer direct;
  private ByteBuffer target;

  /** Makes the values, and looks that they come back as they were. */
  @Setup
  public void prepare() {
    String[] parts = level.split(":", -1);
    chosen =
        Method.of(
            method,
            CompressionBackend.valueOf(parts[0].toUpperCase(Locale.ROOT)),
            Integer.parseInt(parts[1]));
    value = Values.of(values, size);
    stored = chosen.encode(value);
    if (!Arrays.equals(value, chosen.decode(stored, size))) {
      throw new IllegalStateException("the value is another one when it is read");
    }
    direct = ByteBuffer.allocateDirect(size).put(value).flip();
    target = ByteBuffer.allocateDirect(Codec.maxEncodedSize(size));
  }

  /** From an array to an array. */
  @Benchmark
  public byte[] encode() {
    return chosen.encode(value);
  }

  /** Back. */
  @Benchmark
  public byte[] decode() {
    return chosen.decode(stored, size);
  }

  /** From a direct buffer to a direct buffer: zstd, bare and snugly. */
  @Benchmark
  public int encodeDirect() {
    return chosen.encode(direct, target);
  }
}
