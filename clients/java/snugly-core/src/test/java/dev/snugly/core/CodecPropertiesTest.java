package dev.snugly.core;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.testing.Vectors;
import java.nio.ByteBuffer;
import java.util.Arrays;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

/** Properties of every value and every configuration. */
class CodecPropertiesTest {
  private static final int LIMIT = 1 << 20;
  private static final Dictionary PROFILES = Dictionary.of(Vectors.dictionary("profiles"));

  @Property(tries = 500)
  void everyValueIsReadBackAsItWas(
      @ForAll("configurations") CompressionConfiguration configuration,
      @ForAll("values") byte[] value) {
    byte[] before = value.clone();
    byte[] stored = new Codec(configuration).encode(value);
    assertArrayEquals(before, value, "the caller's array is only read");
    // An envelope that was there before is kept, and is then read as what is in it.
    boolean isKept = stored == value && Envelope.inspect(value).isPresent();
    if (!isKept) {
      assertArrayEquals(value, reader().decode(stored));
    }
  }

  @Property(tries = 500)
  void onlyWhatWouldBeMistakenGrows(
      @ForAll("configurations") CompressionConfiguration configuration,
      @ForAll("values") byte[] value) {
    byte[] stored = new Codec(configuration).encode(value);
    assertTrue(stored.length <= Codec.maxEncodedSize(value.length));
    if (Envelope.inspect(value).isEmpty()) {
      assertTrue(stored == value || stored.length < value.length);
    }
  }

  @Property(tries = 300)
  void buffersOfAllKindsGetTheSameAsArrays(
      @ForAll("configurations") CompressionConfiguration configuration,
      @ForAll("values") byte[] value,
      @ForAll boolean isDirect,
      @ForAll boolean isTargetDirect,
      @ForAll boolean isReadOnly) {
    Codec codec = new Codec(configuration);
    byte[] wanted = codec.encode(value);
    ByteBuffer given = placed(value, isDirect);
    given = isReadOnly ? given.asReadOnlyBuffer() : given;
    ByteBuffer target = placed(new byte[Codec.maxEncodedSize(value.length)], isTargetDirect);
    int start = target.position();
    codec.encode(given, null, target);
    assertEquals(0, given.remaining());
    ByteBuffer sent = target.duplicate().flip().position(start);
    assertEquals(ByteBuffer.wrap(wanted), sent);

    ByteBuffer stored = placed(wanted, isDirect);
    byte[] restored = codec.decode(wanted);
    assertEquals(ByteBuffer.wrap(restored), codec.decode(stored, null));
    assertEquals(wanted.length, stored.remaining(), "it is where it was");
  }

  @Property(tries = 2000)
  void anyBytesAreAValueOrATypedError(@ForAll("values") byte[] stored, @ForAll byte backend) {
    byte[] envelope = new byte[Envelope.HEADER_BYTES + stored.length];
    System.arraycopy(stored, 0, envelope, Envelope.HEADER_BYTES, stored.length);
    envelope[1] = 1;
    envelope[2] = 2;
    envelope[Envelope.BACKEND_AT] = backend;
    byte[] value;
    try {
      value = reader().decode(envelope);
    } catch (UndecodableException error) {
      return;
    }
    assertTrue(value == envelope || value.length <= LIMIT);
  }

  @Property(tries = 1000)
  void damageIsNeverACrash(
      @ForAll("values") byte[] value,
      @ForAll boolean isLz4,
      @ForAll boolean hasDictionary,
      @ForAll int at,
      @ForAll byte with) {
    CompressionBackend backend = isLz4 ? CompressionBackend.LZ4 : CompressionBackend.ZSTD;
    Codec writer =
        new Codec(
            CompressionConfiguration.builder()
                .backend(backend)
                .minCompressionSize(6)
                .dictionary(hasDictionary ? PROFILES : null)
                .build());
    byte[] stored = writer.encode(value).clone();
    if (stored.length > Envelope.HEADER_BYTES) {
      int place = Math.floorMod(at, stored.length - Envelope.HEADER_BYTES);
      stored[Envelope.HEADER_BYTES + place] ^= with;
    }
    for (byte[] each : new byte[][] {stored, Arrays.copyOf(stored, stored.length / 2)}) {
      try {
        reader().decode(each);
      } catch (UndecodableException error) {
        assertEquals(each.length, error.stored().length);
      }
    }
  }

  @Property(tries = 300)
  void aWellFormedEnvelopeIsSentAsItIsAndAWrappedOneIsReadAsItWas(@ForAll("values") byte[] value) {
    byte[] envelope = new Codec(CompressionConfiguration.defaults()).encode(value);
    if (envelope == value) {
      return;
    }
    assertSame(envelope, new Codec(CompressionConfiguration.defaults()).encode(envelope));
    CompressionConfiguration wrapping =
        CompressionConfiguration.builder().existingEnvelopes(ExistingEnvelopes.WRAP).build();
    byte[] wrapped = new Codec(wrapping).encode(envelope);
    assertArrayEquals(envelope, reader().decode(wrapped));
  }

  @Provide
  Arbitrary<CompressionConfiguration> configurations() {
    Arbitrary<CompressionBackend> backends = Arbitraries.of(CompressionBackend.values());
    return backends.flatMap(
        backend ->
            Combinators.combine(
                    Arbitraries.integers()
                        .between(Math.max(backend.lowestLevel(), -200), backend.highestLevel()),
                    Arbitraries.integers().between(6, 200),
                    Arbitraries.of(ExistingEnvelopes.values()),
                    Arbitraries.of(true, false),
                    Arbitraries.of(true, false))
                .as(
                    (level, least, existing, checksum, hasDictionary) ->
                        CompressionConfiguration.builder()
                            .backend(backend)
                            .compressionLevel(level)
                            .minCompressionSize(least)
                            .existingEnvelopes(existing)
                            .checksum(checksum)
                            .dictionary(hasDictionary ? PROFILES : null)
                            .build()));
  }

  /** Random ones, ones that repeat themselves, and starts of envelopes with anything behind. */
  @Provide
  Arbitrary<byte[]> values() {
    Arbitrary<byte[]> any = Arbitraries.bytes().array(byte[].class).ofMaxSize(300);
    Arbitrary<byte[]> repeated =
        Combinators.combine(
                Arbitraries.bytes().array(byte[].class).ofMinSize(1).ofMaxSize(30),
                Arbitraries.integers().between(1, 20_000))
            .as(CodecPropertiesTest::repeated);
    Arbitrary<byte[]> noise =
        Combinators.combine(Arbitraries.longs(), Arbitraries.integers().between(0, 5_000))
            .as(Vectors::noise);
    Arbitrary<byte[]> marked =
        any.map(
            bytes -> {
              byte[] start = {0, 1, 2, 0};
              byte[] all = Arrays.copyOf(start, start.length + bytes.length);
              System.arraycopy(bytes, 0, all, start.length, bytes.length);
              return all;
            });
    return Arbitraries.oneOf(any, repeated, noise, marked);
  }

  private static byte[] repeated(byte[] part, int size) {
    byte[] bytes = new byte[size];
    for (int at = 0; at < size; at++) {
      bytes[at] = part[at % part.length];
    }
    return bytes;
  }

  /** The bytes in the middle of a buffer. */
  private static ByteBuffer placed(byte[] bytes, boolean isDirect) {
    int size = bytes.length + 10;
    ByteBuffer buffer = isDirect ? ByteBuffer.allocateDirect(size) : ByteBuffer.allocate(size);
    buffer.position(7);
    buffer.put(bytes).flip().position(7);
    return isDirect ? buffer : buffer.slice();
  }

  private static Codec reader() {
    return new Codec(
        CompressionConfiguration.builder().dictionary(PROFILES).maxDecompressedSize(LIMIT).build());
  }
}
