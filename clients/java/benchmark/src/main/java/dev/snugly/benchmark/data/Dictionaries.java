package dev.snugly.benchmark.data;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.github.luben.zstd.ZstdDictTrainer;
import dev.snugly.core.Dictionary;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import net.jpountz.xxhash.XXHashFactory;

/** Dictionaries, trained from what is not measured. */
public final class Dictionaries {
  /** Length of a dictionary, in bytes. */
  private static final int SIZE = 16 << 10;

  private static final int SAMPLES = 2_000;

  /** Those of the values that are measured begin with another one. */
  private static final long SEED = 2;

  private static final int ID_AT = 4;
  private static final int CONTENT_AT = 8;
  private static final long FIRST_ID = 32_768;

  private Dictionaries() {}

  /** Returns one for generated records. */
  public static Dictionary ofRecords() {
    JsonRecords records = new JsonRecords(new Random(SEED));
    return trained(Stream.generate(() -> records.next().getBytes(UTF_8)).limit(SAMPLES).toList());
  }

  /**
   * Trains one, and gives it the ID of its content, as the specification has it.
   *
   * @param samples values that are alike
   */
  public static Dictionary trained(List<byte[]> samples) {
    int all = samples.stream().mapToInt(sample -> sample.length).sum();
    ZstdDictTrainer trainer = new ZstdDictTrainer(all, SIZE);
    samples.forEach(trainer::addSample);
    byte[] bytes = trainer.trainSamples();
    long hash =
        XXHashFactory.fastestInstance()
            .hash64()
            .hash(bytes, CONTENT_AT, bytes.length - CONTENT_AT, 0);
    long id = FIRST_ID + Long.remainderUnsigned(hash, (1L << 31) - FIRST_ID);
    ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).putInt(ID_AT, (int) id);
    return Dictionary.of(bytes);
  }
}
