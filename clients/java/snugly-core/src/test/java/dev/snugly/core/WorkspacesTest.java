package dev.snugly.core;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.github.luben.zstd.ZstdCompressCtx;
import com.github.luben.zstd.ZstdDecompressCtx;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import javax.management.JMException;
import javax.management.ObjectName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;

/** Number of contexts of the native libraries, for however many threads. */
class WorkspacesTest {
  private static final long PATIENCE = 60;

  /** One for values with a dictionary, and one for those without. */
  private static final int CONTEXTS = 2 * Workspaces.COUNT;

  @Test
  void platformThreadsHaveNoContextsOfTheirOwn() throws Exception {
    contextsStayFew(Executors.newCachedThreadPool(), 1_000);
  }

  @Test
  @EnabledForJreRange(min = JRE.JAVA_21)
  void virtualThreadsHaveNoContextsOfTheirOwn() throws Exception {
    contextsStayFew(
        (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null),
        10_000);
  }

  /** All threads have used contexts and are still there when these are counted. */
  private static void contextsStayFew(ExecutorService executor, int threads) throws Exception {
    Codec codec = new Codec(CompressionConfiguration.defaults());
    CountDownLatch used = new CountDownLatch(threads);
    CountDownLatch counted = new CountDownLatch(1);
    List<Future<?>> tasks = new ArrayList<>();
    try {
      for (int thread = 0; thread < threads; thread++) {
        byte[] value = ("<p>page " + thread + "</p>").repeat(100).getBytes(UTF_8);
        tasks.add(
            executor.submit(
                () -> {
                  try {
                    assertArrayEquals(value, codec.decode(codec.encode(value)));
                  } finally {
                    used.countDown();
                  }
                  return counted.await(PATIENCE, TimeUnit.SECONDS);
                }));
      }
      assertTrue(used.await(PATIENCE, TimeUnit.SECONDS));
      for (Class<?> kind : List.of(ZstdCompressCtx.class, ZstdDecompressCtx.class)) {
        long live = live(kind);
        assertTrue(live > 0 && live <= CONTEXTS, () -> live + " of " + kind);
      }
    } finally {
      counted.countDown();
      executor.shutdown();
    }
    for (Future<?> task : tasks) {
      assertEquals(true, task.get());
    }
    assertEquals(threads, codec.statistics().of(Counter.ENCODED_VALUES, Encoding.ZSTD));
    assertEquals(threads, codec.statistics().of(Counter.DECODED_VALUES, Encoding.ZSTD));
  }

  /** Counts the reachable objects of a class, as {@code jcmd GC.class_histogram} does. */
  private static long live(Class<?> kind) throws JMException {
    String histogram =
        (String)
            ManagementFactory.getPlatformMBeanServer()
                .invoke(
                    new ObjectName("com.sun.management:type=DiagnosticCommand"),
                    "gcClassHistogram",
                    new Object[] {new String[0]},
                    new String[] {String[].class.getName()});
    return histogram
        .lines()
        .map(line -> line.trim().split("\\s+"))
        .filter(row -> row.length > 3 && row[3].equals(kind.getName()))
        .mapToLong(row -> Long.parseLong(row[1]))
        .sum();
  }
}
