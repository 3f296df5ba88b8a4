package dev.snugly.core;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.UndecodableException.Kind;
import dev.snugly.testing.Vectors;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HexFormat;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicInteger;
import net.jpountz.xxhash.XXHashFactory;
import org.junit.jupiter.api.Test;

/** Envelopes of LZ4 with a dictionary. */
class Lz4DictionaryTest {
  private static final Dictionary PROFILES = Dictionary.of(Vectors.dictionary("profiles"));
  private static final byte[] KEY = "user:1".getBytes(UTF_8);

  /** A block of five literals. */
  private static final String HELLO = "5068656c6c6f";

  private static byte[] hello() {
    return envelope(PROFILES.id(), 5, 0xfb0077f9, HELLO);
  }

  private static byte[] envelope(int id, int size, int checksum, String block) {
    byte[] bytes = HexFormat.of().parseHex(block);
    return ByteBuffer.allocate(Envelope.HEADER_BYTES + Lz4Dictionary.HEAD_BYTES + bytes.length)
        .order(ByteOrder.LITTLE_ENDIAN)
        .put(new byte[] {0, 1, 2, 0, (byte) 0x82})
        .putInt(id)
        .putInt(size)
        .putInt(checksum)
        .put(bytes)
        .array();
  }

  private static Codec reader(CompressionConfiguration.Builder settings) {
    return new Codec(settings.dictionary(PROFILES).backend(CompressionBackend.NONE).build());
  }

  private static UndecodableException refused(Codec codec, byte[] stored) {
    return assertThrows(UndecodableException.class, () -> codec.decode(stored, KEY));
  }

  @Test
  void aReaderNeedsNoSettingButTheDictionary() {
    Codec codec = reader(CompressionConfiguration.builder());
    assertArrayEquals("hello".getBytes(UTF_8), codec.decode(hello()));
    assertEquals(1, codec.statistics().total(Counter.DICTIONARY_HITS));
    assertEquals(1, codec.statistics().of(Counter.DECODED_VALUES, Encoding.LZ4_DICTIONARY));
    assertEquals(5, codec.statistics().of(Counter.DECODED_BYTES_OUT, Encoding.LZ4_DICTIONARY));
  }

  @Test
  void inspectSaysWhatTheHeadSays() {
    OptionalLong id = OptionalLong.of(PROFILES.id());
    assertEquals(
        Optional.of(
            new Envelope(0x82, Optional.of(Encoding.LZ4_DICTIONARY), OptionalLong.of(5), id)),
        Envelope.inspect(hello()));
    byte[] cut = envelope(PROFILES.id(), 0, 0x02cc5d05, "");
    OptionalLong none = OptionalLong.empty();
    assertEquals(
        Optional.of(new Envelope(0x82, Optional.of(Encoding.LZ4_DICTIONARY), none, none)),
        Envelope.inspect(cut));
  }

  @Test
  void anErrorNamesTheKeyTheDictionaryAndTheSizes() {
    Codec codec = reader(CompressionConfiguration.builder());
    byte[] damaged = hello();
    damaged[damaged.length - 1] ^= 1;
    UndecodableException error = refused(codec, damaged);
    assertEquals(Kind.CORRUPT, error.kind());
    assertEquals(
        "cannot decode an envelope of 23 bytes, backend 82, at key \"user:1\": it claims 5 bytes"
            + " with the dictionary 1348745366 of "
            + PROFILES.bytes().length
            + " bytes, but they have another checksum",
        error.getMessage());
    byte[] longer = envelope(PROFILES.id(), 6, 0xfb0077f9, HELLO);
    assertTrue(refused(codec, longer).getMessage().contains("its block holds 5"));
    Codec without = new Codec(CompressionConfiguration.defaults());
    UndecodableException missing = refused(without, hello());
    assertEquals(Kind.DICTIONARY_MISSING, missing.kind());
    assertEquals(PROFILES.id(), missing.dictionary());
  }

  @Test
  void theBytesOfAnotherDictionaryAreNeverAValue() {
    // Copies the last four bytes, in which the dictionaries differ, and has twelve literals.
    String block = "000400" + "c0" + "7477656c7665206279746573";
    byte[] end = PROFILES.bytes();
    byte[] value = new byte[16];
    System.arraycopy(end, end.length - 4, value, 0, 4);
    System.arraycopy("twelve bytes".getBytes(UTF_8), 0, value, 4, 12);
    int checksum = XXHashFactory.safeInstance().hash32().hash(value, 0, value.length, 0);
    Dictionary other = Dictionary.of(Vectors.otherDictionary(7));
    byte[] stored = envelope(PROFILES.id(), value.length, checksum, block);
    assertArrayEquals(value, reader(CompressionConfiguration.builder()).decode(stored));
    byte[] renamed = envelope(other.id(), value.length, checksum, block);
    Codec codec = new Codec(CompressionConfiguration.defaults(), Dictionaries.of(other));
    assertTrue(refused(codec, renamed).getMessage().contains("another checksum"));
  }

  @Test
  void nothingIsFetchedForWhatCannotBeReadWithAnyDictionary() {
    AtomicInteger fetched = new AtomicInteger();
    Dictionaries none =
        new Dictionaries() {
          @Override
          public Dictionary forKey(byte[] key) {
            return null;
          }

          @Override
          public Dictionary find(int id) {
            return null;
          }

          @Override
          public boolean fetch(int id, Budget reply) {
            fetched.incrementAndGet();
            return false;
          }
        };
    Codec codec =
        new Codec(CompressionConfiguration.builder().maxDecompressedSize(1_000).build(), none);
    byte[] large = envelope(PROFILES.id(), 1_001, 0, HELLO);
    byte[] beyond = envelope(PROFILES.id(), 999, 0, "506865");
    byte[] reserved = envelope(32_767, 5, 0xfb0077f9, HELLO);
    assertEquals(Kind.TOO_LARGE, refused(codec, large).kind());
    assertEquals(Kind.CORRUPT, refused(codec, beyond).kind());
    assertEquals(Kind.CORRUPT, refused(codec, reserved).kind());
    for (byte[] each : new byte[][] {large, beyond, reserved}) {
      assertEquals(0, codec.dictionaryOf(each));
    }
    assertEquals(0, fetched.get());
    assertEquals(PROFILES.id(), codec.dictionaryOf(hello()));
    assertEquals(Kind.DICTIONARY_MISSING, refused(codec, hello()).kind());
    assertEquals(1, fetched.get());
  }

  @Test
  void theLimitOfAReplyCounts() {
    Codec codec = reader(CompressionConfiguration.builder());
    Budget reply = new Budget(CompressionConfiguration.builder().maxReplyBytes(9).build());
    assertArrayEquals("hello".getBytes(UTF_8), codec.decode(hello(), null, reply));
    UndecodableException error =
        assertThrows(UndecodableException.class, () -> codec.decode(hello(), null, reply));
    assertEquals(Kind.TOO_LARGE, error.kind());
    assertTrue(error.getMessage().contains("maxReplyBytes"));
  }

  @Test
  void aWriterWithADictionaryMakesSmallerValuesThanOneWithout() {
    CompressionConfiguration.Builder settings =
        CompressionConfiguration.builder().backend(CompressionBackend.LZ4);
    byte[] value =
        "{\"name\": \"name-62\", \"email\": \"email-63\", \"city\": \"city-64\", \"plan\": 1}"
            .getBytes(UTF_8);
    Codec without = new Codec(settings.build());
    assertSame(value, without.encode(value));
    Codec with = new Codec(settings.dictionary(PROFILES).build());
    for (int level : new int[] {-128, -1, 0, 1, 12}) {
      Codec writer = new Codec(settings.compressionLevel(level).build());
      byte[] stored = writer.encode(value);
      assertTrue(stored.length < value.length, () -> stored.length + " bytes");
      assertEquals(0x82, Envelope.inspect(stored).orElseThrow().backend());
      assertArrayEquals(value, with.decode(stored));
      assertEquals(1, writer.statistics().of(Counter.ENCODED_VALUES, Encoding.LZ4_DICTIONARY));
    }
  }

  @Test
  void whatWouldBeMistakenIsWrittenWithoutADictionary() {
    byte[] marked = {0, 1, 2, 0, (byte) 0x82, 1, 2, 3};
    Codec codec =
        new Codec(
            CompressionConfiguration.builder()
                .backend(CompressionBackend.LZ4)
                .dictionary(PROFILES)
                .build());
    byte[] stored = codec.encode(marked);
    assertEquals(0x02, Envelope.inspect(stored).orElseThrow().backend());
    assertArrayEquals(marked, codec.decode(stored));
  }

  @Test
  void anEnvelopeThatIsWellFormedIsSentAsItIs() {
    Codec codec = new Codec(CompressionConfiguration.defaults());
    byte[] stored = hello();
    assertSame(stored, codec.encode(stored));
    byte[] beyond = envelope(PROFILES.id(), 65_536, 0, HELLO);
    byte[] wrapped = codec.encode(beyond);
    assertFalse(wrapped == beyond);
    assertArrayEquals(beyond, codec.decode(wrapped));
  }
}
