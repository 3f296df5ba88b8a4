package dev.snugly.benchmark.codec;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionBackend;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Processor time of the codec beside that of bare zstd-jni, in runs that take turns: it can be
 * measured beside other work, which JMH's wall clock cannot. Each figure is judged by its median.
 *
 * <p>The arguments are the level, the kind of values ({@link Values}) and sizes in bytes.
 */
public final class Overhead {
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
  private static final int PAIRS = 41;
  private static final int WARM_UP = 40;

  /** The aim: at most so much of what bare zstd-jni takes. */
  private static final double AIM = 1.05;

  /** About as long as one run takes, in nanoseconds. */
  private static final double RUN = 20e6;

  /** Keeps what is made from being optimized away. */
  @SuppressWarnings("unused")
  private static volatile Object made;

  private Overhead() {}

  /** Prints a line for each size and each way of calling, and how often the aim was met. */
  public static void main(String[] args) {
    int level = Integer.parseInt(args[0]);
    Method bare = Method.of("bare", CompressionBackend.ZSTD, level);
    Method snugly = Method.of("snugly", CompressionBackend.ZSTD, level);
    int judged = 0;
    int met = 0;
    for (String size : List.of(args).subList(2, args.length)) {
      byte[] value = Values.of(args[1], Integer.parseInt(size));
      Map<String, Runnable> without = ways(bare, value);
      Map<String, Runnable> with = ways(snugly, value);
      for (String way : without.keySet()) {
        judged++;
        met += isMet(way, value.length, without.get(way), with.get(way)) ? 1 : 0;
      }
    }
    System.out.printf(Locale.ROOT, "%d of %d aims met (<= %.2f).%n", met, judged, AIM);
  }

  private static Map<String, Runnable> ways(Method method, byte[] value) {
    byte[] stored = method.encode(value);
    if (stored == value) {
      throw new IllegalArgumentException(value.length + " bytes of these are not compressed");
    }
    ByteBuffer direct = ByteBuffer.allocateDirect(value.length).put(value).flip();
    ByteBuffer target = ByteBuffer.allocateDirect(Codec.maxEncodedSize(value.length));
    Map<String, Runnable> ways = new LinkedHashMap<>();
    ways.put("encode", () -> made = method.encode(value));
    ways.put("decode", () -> made = method.decode(stored, value.length));
    ways.put("encodeDirect", () -> method.encode(direct, target));
    return ways;
  }

  /** Measures one way of calling, prints what it takes, and tells whether the aim is met. */
  private static boolean isMet(String way, int size, Runnable bare, Runnable snugly) {
    int times = 1;
    for (int round = 0; round < WARM_UP; round++) {
      double slower = Math.max(time(bare, times), time(snugly, times));
      times = (int) Math.max(1, RUN / slower);
    }
    double[] ratios = new double[PAIRS];
    double[] each = new double[PAIRS];
    for (int pair = 0; pair < PAIRS; pair++) {
      boolean isBareFirst = pair % 2 == 0;
      double first = time(isBareFirst ? bare : snugly, times);
      double second = time(isBareFirst ? snugly : bare, times);
      each[pair] = isBareFirst ? first : second;
      ratios[pair] = (isBareFirst ? second : first) / each[pair];
    }
    Arrays.sort(ratios);
    Arrays.sort(each);
    double ratio = ratios[PAIRS / 2];
    boolean met = ratio <= AIM;
    System.out.printf(
        Locale.ROOT,
        "%-12s %8d bytes: bare %10.0f ns, snugly %.3f of it (quartiles %.3f and %.3f): %s%n",
        way,
        size,
        each[PAIRS / 2],
        ratio,
        ratios[PAIRS / 4],
        ratios[3 * PAIRS / 4],
        met ? "met" : "MISSED");
    return met;
  }

  /** Nanoseconds of the processor for one of so many runs. */
  private static double time(Runnable run, int times) {
    long start = THREADS.getCurrentThreadCpuTime();
    for (int count = 0; count < times; count++) {
      run.run();
    }
    return (double) Math.max(THREADS.getCurrentThreadCpuTime() - start, 1) / times;
  }
}
