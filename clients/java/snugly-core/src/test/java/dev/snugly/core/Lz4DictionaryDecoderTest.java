package dev.snugly.core;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.testing.Vectors;
import java.io.ByteArrayOutputStream;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Blocks that copy from a dictionary, beside the format read byte for byte. */
class Lz4DictionaryDecoderTest {
  private static final byte[] DICTIONARY = Vectors.noise(5, 300);

  /** A block that a test makes, and the value that it stands for. */
  private static final class Block {
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private final ByteArrayOutputStream all = new ByteArrayOutputStream();
    private final int window;

    Block(byte[] dictionary) {
      window = Math.min(dictionary.length, Lz4DictionaryDecoder.WINDOW);
      all.write(dictionary, dictionary.length - window, window);
    }

    Block literals(byte[] literals) {
      token(literals, 0);
      return this;
    }

    Block match(byte[] literals, int distance, int length) {
      token(literals, length - Lz4DictionaryDecoder.LEAST_MATCH);
      bytes.write(distance);
      bytes.write(distance >> 8);
      more(length - Lz4DictionaryDecoder.LEAST_MATCH);
      for (int each = 0; each < length; each++) {
        byte[] before = all.toByteArray();
        all.write(before[before.length - distance]);
      }
      return this;
    }

    private void token(byte[] literals, int match) {
      bytes.write(Math.min(literals.length, 15) << 4 | Math.min(match, 15));
      more(literals.length);
      bytes.writeBytes(literals);
      all.writeBytes(literals);
    }

    private void more(int length) {
      if (length < 15) {
        return;
      }
      int left = length - 15;
      for (; left >= 255; left -= 255) {
        bytes.write(255);
      }
      bytes.write(left);
    }

    int made() {
      return all.size() - window;
    }

    byte[] value() {
      byte[] both = all.toByteArray();
      return Arrays.copyOfRange(both, window, both.length);
    }

    byte[] bytes() {
      return bytes.toByteArray();
    }
  }

  private static byte[] decode(byte[] block, byte[] dictionary, int size) throws Fault {
    byte[] value = new byte[size];
    return Arrays.copyOf(
        value, Lz4DictionaryDecoder.decode(block, 0, block.length, dictionary, value));
  }

  private static Block random(Random random, byte[] dictionary) {
    Block block = new Block(dictionary);
    for (int left = random.nextInt(6); left > 0; left--) {
      int reach = Math.min(block.made() + block.window, 65_535);
      byte[] literals = new byte[length(random)];
      random.nextBytes(literals);
      reach = Math.min(reach + literals.length, 65_535);
      if (reach > 0) {
        int near = 1 + random.nextInt(Math.min(reach, 40));
        int distance = random.nextBoolean() ? near : 1 + random.nextInt(reach);
        block.match(literals, distance, Lz4DictionaryDecoder.LEAST_MATCH + length(random));
      }
    }
    byte[] last = new byte[12 + length(random)];
    random.nextBytes(last);
    return block.literals(last);
  }

  private static int length(Random random) {
    return random.nextInt(10) == 0 ? random.nextInt(700) : random.nextInt(40);
  }

  @Property(tries = 1000)
  void everyBlockIsReadByTheFormat(@ForAll Random random) throws Fault {
    byte[] dictionary = Vectors.noise(random.nextLong(), random.nextInt(500));
    Block block = random(random, dictionary);
    assertArrayEquals(block.value(), decode(block.bytes(), dictionary, block.made()));
  }

  @Property(tries = 5000)
  void damageIsAFaultOrReadByTheFormat(@ForAll Random random) {
    Block block = random(random, DICTIONARY);
    byte[] damaged = block.bytes();
    for (int times = 1 + random.nextInt(3); times > 0; times--) {
      damaged[random.nextInt(damaged.length)] = (byte) random.nextInt();
    }
    damaged = random.nextInt(4) == 0 ? Arrays.copyOf(damaged, damaged.length / 2) : damaged;
    byte[] value;
    try {
      value = decode(damaged, DICTIONARY, block.made());
    } catch (Fault fault) {
      assertEquals(UndecodableException.Kind.CORRUPT, fault.kind);
      return;
    }
    assertArrayEquals(read(damaged, DICTIONARY), value);
  }

  /** What a block that is none of damaged says, by the description of the format. */
  private static byte[] read(byte[] block, byte[] dictionary) {
    byte[] all = Arrays.copyOf(dictionary, dictionary.length + 255 * block.length);
    int made = dictionary.length;
    int at = 0;
    while (true) {
      int token = block[at++] & 255;
      int literals = token >> 4;
      if (literals == 15) {
        do {
          literals += block[at] & 255;
        } while (block[at++] == -1);
      }
      System.arraycopy(block, at, all, made, literals);
      at += literals;
      made += literals;
      if (at == block.length) {
        return Arrays.copyOfRange(all, dictionary.length, made);
      }
      int distance = (block[at] & 255) + 256 * (block[at + 1] & 255);
      at += 2;
      int length = token & 15;
      if (length == 15) {
        do {
          length += block[at] & 255;
        } while (block[at++] == -1);
      }
      for (int left = length + 4; left > 0; left--) {
        all[made] = all[made - distance];
        made++;
      }
    }
  }

  @Test
  void aMatchMayRunFromTheDictionaryIntoTheValueAndRepeatIt() throws Fault {
    for (int distance : new int[] {1, 2, 7, 8, 9, 100, 300}) {
      for (int length : new int[] {4, 15, 32, 33, 301, 5_000}) {
        Block block = new Block(DICTIONARY).match(new byte[0], distance, length);
        block.literals("twelve bytes".getBytes(UTF_8));
        assertArrayEquals(block.value(), decode(block.bytes(), DICTIONARY, block.made()));
      }
    }
  }

  @Test
  void onlyTheLast64KiBOfADictionaryCount() throws Fault {
    byte[] dictionary = Vectors.noise(1, 70_000);
    byte[] last = "twelve bytes".getBytes(UTF_8);
    Block block = new Block(dictionary).match(new byte[0], 65_535, 10).literals(last);
    byte[] value = decode(block.bytes(), dictionary, block.made());
    assertArrayEquals(Arrays.copyOfRange(dictionary, 4_465, 4_475), Arrays.copyOf(value, 10));
    byte[] shorter = Arrays.copyOf(dictionary, 65_534);
    Fault fault = assertThrows(Fault.class, () -> decode(block.bytes(), shorter, block.made()));
    assertTrue(fault.getMessage().contains("before the dictionary"), fault.getMessage());
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "", // no token
        "f0", // a length that is missing
        "f0ffffffff", // one without an end
        "50", // literals that are missing
        "1061", // fewer of them than the value has, and then the end
        "0f", // no distance
        "0f01", // half of one
        "0f0000006161616161616161616161616161", // distance 0
        "0f2e01006161616161616161616161616161", // a distance beyond the dictionary
        "0f0100ffff", // a match whose length has no end
        "0f0100ffffff00c0616161616161616161616161", // a match beyond the value
        "060100", // a match at the end
        "060100" + "40" + "61616161", // four literals at the end
        "60616161616161" + "000100" + "5061616161", // a match within the last twelve bytes
      })
  void aBlockThatIsNoneIsAFault(String hex) {
    byte[] block = HexFormat.of().parseHex(hex);
    assertThrows(
        Fault.class,
        () -> {
          if (decode(block, DICTIONARY, 14).length != 14) {
            throw Fault.corrupt("another length");
          }
        });
  }

  @Test
  void lengthsOverTheRangeOfNumbersAreFaults() {
    byte[] block = new byte[9_000_000];
    Arrays.fill(block, (byte) 255);
    assertThrows(Fault.class, () -> decode(block, DICTIONARY, 20));
    block[block.length - 1] = 0;
    assertThrows(Fault.class, () -> decode(block, DICTIONARY, 20));
  }
}
