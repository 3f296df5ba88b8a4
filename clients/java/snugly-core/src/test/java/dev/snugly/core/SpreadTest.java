package dev.snugly.core;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.Size;
import org.junit.jupiter.api.Test;

/** Looks of values. */
class SpreadTest {
  private static final int ROUNDS = 200;

  /** As looks leave it that were at other values. */
  private final byte[] seen = new byte[Spread.SEEN];

  @Test
  void randomBytesOfAnyLengthLookEvenAndBase64DoesNot() {
    for (int size : new int[] {128, 200, 256, 1_000, 4_096, 65_536}) {
      int even = Collections.frequency(looks(256, size), Spread.EVEN);
      assertTrue(even >= ROUNDS - 2, () -> even + " random values of " + size + " bytes look even");
      int base64 = Collections.frequency(looks(64, size), Spread.EVEN);
      assertEquals(0, base64, () -> "base64 of " + size + " bytes that looks even");
      int hexadecimal = Collections.frequency(looks(16, size), Spread.SKEWED);
      assertEquals(ROUNDS, hexadecimal, () -> "hexadecimal of " + size + " bytes");
    }
  }

  @Test
  void jsonLooksSkewed() {
    byte[] json =
        ("{\"id\":4711,\"name\":\"amber basin\",\"price\":12.95,\"tags\":[\"cedar\",\"delta\"],"
                + "\"active\":true},")
            .repeat(50)
            .getBytes(UTF_8);
    for (int size : new int[] {64, 100, 300, 900, 4_000}) {
      assertEquals(Spread.SKEWED, Spread.of(Bytes.of(json, size), seen), size + " bytes");
    }
  }

  @Test
  void aLongRunOfOneByteLooksSkewed() {
    for (int size : new int[] {256, 1 << 20}) {
      assertEquals(Spread.SKEWED, Spread.of(Bytes.of(new byte[size], size), seen));
    }
  }

  @Property
  void anyValueCanBeLookedAtAndIsTheSameInABuffer(@ForAll @Size(max = 10_000) byte[] value) {
    ByteBuffer buffer = ByteBuffer.allocateDirect(value.length + 7).position(7).put(value);
    assertEquals(
        Spread.of(Bytes.of(value, value.length), seen),
        Spread.of(Bytes.of(buffer.flip().position(7)), seen));
  }

  /** The looks of random values of so many symbols. */
  private List<Spread> looks(int symbols, int size) {
    return IntStream.range(0, ROUNDS)
        .mapToObj(
            seed -> {
              byte[] value = new byte[size];
              new Random(seed).nextBytes(value);
              for (int at = 0; at < size; at++) {
                value[at] = (byte) Math.floorMod(value[at], symbols);
              }
              return Spread.of(Bytes.of(value, size), seen);
            })
        .toList();
  }
}
