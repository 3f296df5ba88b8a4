package dev.snugly.core;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.testing.Vectors;
import java.util.Arrays;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.junit.jupiter.api.Test;

/** Blocks that copy from a dictionary are read back as the value, whatever both are. */
class Lz4DictionaryEncoderTest {
  /** Used again and again, as a workspace does. */
  private static final Lz4DictionaryEncoder ENCODER = new Lz4DictionaryEncoder();

  private static byte[] encode(
      Lz4DictionaryEncoder encoder, byte[] dictionary, int acceleration, byte[] value) {
    // Neither the value nor the block begins where its array does.
    byte[] placed = new byte[value.length + 7];
    System.arraycopy(value, 0, placed, 7, value.length);
    byte[] target = new byte[3 + Codec.maxEncodedSize(value.length)];
    int end =
        encoder.encode(
            new Lz4DictionaryTable(dictionary), acceleration, placed, 7, placed.length, target, 3);
    return Arrays.copyOfRange(target, 3, end);
  }

  private static byte[] decode(byte[] block, byte[] dictionary, int size) throws Fault {
    byte[] value = new byte[size];
    assertEquals(size, Lz4DictionaryDecoder.decode(block, 0, block.length, dictionary, value));
    return value;
  }

  private static byte[] dictionary(Random random) {
    int size = 8 + random.nextInt(random.nextInt(4) == 0 ? 100_000 : 2_000);
    return Vectors.noise(random.nextLong(), size);
  }

  /** Pieces of a dictionary, of the value itself, runs, and what is neither. */
  private static byte[] value(Random random, byte[] dictionary) {
    byte[] value = new byte[random.nextInt(random.nextInt(8) == 0 ? 200_000 : 1_000)];
    for (int made = 0; made < value.length; ) {
      int most = random.nextInt(5) == 0 ? 2_000 : 40;
      int size = Math.min(1 + random.nextInt(most), value.length - made);
      switch (random.nextInt(4)) {
        case 0 -> {
          int from = random.nextInt(dictionary.length);
          size = Math.min(size, dictionary.length - from);
          System.arraycopy(dictionary, from, value, made, size);
        }
        case 1 -> {
          int from = random.nextInt(made + 1);
          size = Math.min(size, made - from);
          System.arraycopy(value, from, value, made, size);
        }
        case 2 -> Arrays.fill(value, made, made + size, (byte) random.nextInt());
        default -> System.arraycopy(Vectors.noise(random.nextLong(), size), 0, value, made, size);
      }
      made += size;
    }
    return value;
  }

  @Property(tries = 2000)
  void everyValueIsReadBackAsItWas(
      @ForAll Random random, @ForAll @IntRange(min = 1, max = 128) int acceleration) throws Fault {
    byte[] dictionary = dictionary(random);
    byte[] value = value(random, dictionary);
    byte[] block = encode(ENCODER, dictionary, acceleration, value);
    assertArrayEquals(value, decode(block, dictionary, value.length));
    assertTrue(block.length <= value.length + value.length / 255 + 16);
  }

  @Test
  void theEndOfADictionaryIsUsedUpToTheFarthestByte() throws Fault {
    byte[] dictionary = Vectors.noise(1, 70_000);
    byte[] end = "and something that is nowhere else".getBytes(UTF_8);
    for (int from : new int[] {4_465, 10_000, 69_900}) {
      byte[] value = Arrays.copyOf(Arrays.copyOfRange(dictionary, from, from + 100), 134);
      System.arraycopy(end, 0, value, 100, end.length);
      byte[] block = encode(ENCODER, dictionary, 1, value);
      assertTrue(block.length < 50, () -> block.length + " bytes");
      assertArrayEquals(value, decode(block, dictionary, value.length));
    }
  }

  @Test
  void aMatchGoesOnFromTheDictionaryIntoTheValue() throws Fault {
    byte[] dictionary = Vectors.noise(1, 100);
    byte[] value = new byte[1_000];
    for (int at = 0; at < value.length; at++) {
      value[at] = dictionary[60 + at % 40];
    }
    byte[] block = encode(ENCODER, dictionary, 1, value);
    assertTrue(block.length < 20, () -> block.length + " bytes");
    assertArrayEquals(value, decode(block, dictionary, value.length));
  }

  @Test
  void shortValuesAndLongRunsAreReadBack() throws Fault {
    byte[] dictionary = Vectors.noise(1, 100);
    for (int size = 0; size < 100; size++) {
      byte[] piece = Arrays.copyOf(dictionary, size);
      assertArrayEquals(piece, decode(encode(ENCODER, dictionary, 1, piece), dictionary, size));
    }
    byte[] zeros = new byte[5_000_000];
    byte[] block = encode(ENCODER, dictionary, 1, zeros);
    assertTrue(block.length < 20_000, () -> block.length + " bytes");
    assertArrayEquals(zeros, decode(block, dictionary, zeros.length));
  }

  @Test
  void numbersOfPlacesBeginAgainBeforeTheyEnd() throws Fault {
    byte[] dictionary = Vectors.noise(1, 100);
    byte[] value = "again and ".repeat(30).getBytes(UTF_8);
    Lz4DictionaryEncoder encoder = new Lz4DictionaryEncoder(Integer.MAX_VALUE - 1_000);
    byte[] wanted = encode(new Lz4DictionaryEncoder(), dictionary, 1, value);
    for (int times = 0; times < 10; times++) {
      byte[] block = encode(encoder, dictionary, 1, value);
      assertArrayEquals(wanted, block);
      assertArrayEquals(value, decode(block, dictionary, value.length));
    }
  }

  @Test
  void accelerationMakesBlocksLonger() {
    Random random = new Random(1);
    byte[] dictionary = dictionary(random);
    byte[] value = new byte[20_000];
    for (int at = 0; at < value.length; at++) {
      value[at] = (byte) "abcd".charAt(random.nextInt(4));
    }
    int normal = encode(ENCODER, dictionary, 1, value).length;
    int fast = encode(ENCODER, dictionary, 64, value).length;
    assertTrue(fast > normal, () -> fast + " and " + normal);
  }
}
