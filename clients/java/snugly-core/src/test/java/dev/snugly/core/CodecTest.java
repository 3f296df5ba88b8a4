package dev.snugly.core;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.testing.GzipFile;
import dev.snugly.testing.Vectors;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** Behaviour of a codec besides what the vectors and the properties say. */
class CodecTest {
  private static final byte[] PAGE = "<p>hello</p>".repeat(500).getBytes(UTF_8);

  @Test
  void countsWhatItDoesUnderTheNamesOfTheOtherClients() {
    Codec codec = new Codec(CompressionConfiguration.defaults());
    byte[] stored = codec.encode(PAGE);
    codec.encode("short".getBytes(UTF_8));
    codec.encode(Vectors.noise(1, 1000));
    codec.encode(stored);
    codec.decode(stored);
    codec.decode(PAGE);
    assertThrows(UndecodableException.class, () -> codec.decode(new byte[] {0, 1, 2, 0, 3}));
    Map<String, Long> counted = codec.statistics().asMap();
    Map<String, Long> wanted =
        Map.ofEntries(
            Map.entry("encodedValuesZstd", 1L),
            Map.entry("encodedBytesInZstd", (long) PAGE.length),
            Map.entry("encodedBytesOutZstd", (long) stored.length),
            Map.entry("encodedValuesIdentity", 3L),
            Map.entry("encodedBytesOutIdentity", 5L + 1000 + stored.length),
            Map.entry("skippedSmall", 1L),
            Map.entry("skippedNoGain", 1L),
            Map.entry("skippedCompressed", 1L),
            Map.entry("decodedValuesZstd", 1L),
            Map.entry("decodedBytesOutZstd", (long) PAGE.length),
            Map.entry("decodedValuesIdentity", 1L),
            Map.entry("decodeFailures", 1L),
            Map.entry("encodedValuesZstdDictionary", 0L));
    wanted.forEach((name, number) -> assertEquals(number, counted.get(name), name));
    assertEquals(4, codec.statistics().total(Counter.ENCODED_VALUES));
  }

  @Test
  void anEnvelopeThatClaimsMoreThanIsReadIsAValueLikeAnyOther() {
    CompressionConfiguration.Builder lz4 =
        CompressionConfiguration.builder().backend(CompressionBackend.LZ4);
    byte[] stored = new Codec(lz4.build()).encode(PAGE);
    Codec reader = new Codec(lz4.maxDecompressedSize(PAGE.length - 1).build());
    byte[] wrapped = reader.encode(stored);
    assertFalse(Arrays.equals(stored, wrapped), "it would be read as an envelope that is refused");
    assertArrayEquals(stored, reader.decode(wrapped));
  }

  @Test
  void countsAreShownWithoutThoseThatAreZero() {
    Codec codec = new Codec(CompressionConfiguration.defaults());
    assertEquals("{}", codec.statistics().toString());
    codec.count(Counter.DICTIONARY_MISSES);
    codec.count(Counter.DICTIONARIES_FETCHED);
    assertEquals("{dictionaryMisses=1, dictionariesFetched=1}", codec.statistics().toString());
  }

  @Test
  void countsAreCompleteWhenManyThreadsCount() throws Exception {
    Codec codec = new Codec(CompressionConfiguration.defaults());
    int threads = 4 * Workspaces.COUNT;
    ExecutorService executor = Executors.newFixedThreadPool(threads);
    try {
      List<Callable<Void>> tasks = new ArrayList<>();
      for (int task = 0; task < threads; task++) {
        tasks.add(
            () -> {
              for (int round = 0; round < 200; round++) {
                assertArrayEquals(PAGE, codec.decode(codec.encode(PAGE)));
              }
              return null;
            });
      }
      for (Future<Void> done : executor.invokeAll(tasks)) {
        done.get();
      }
    } finally {
      executor.shutdownNow();
    }
    assertEquals(200L * threads, codec.statistics().of(Counter.ENCODED_VALUES, Encoding.ZSTD));
    assertEquals(200L * threads, codec.statistics().of(Counter.DECODED_VALUES, Encoding.ZSTD));
  }

  @Test
  void whoFindsAllWorkspacesInUseStillGetsOne() {
    List<Workspace> held = new ArrayList<>();
    try {
      for (int count = 0; count < Workspaces.COUNT; count++) {
        held.add(Workspaces.acquire());
      }
      Codec codec = new Codec(CompressionConfiguration.defaults());
      assertArrayEquals(PAGE, codec.decode(codec.encode(PAGE)));
      assertEquals(1, codec.statistics().of(Counter.DECODED_VALUES, Encoding.ZSTD));
    } finally {
      held.forEach(Workspace::release);
    }
  }

  @Test
  void aDisabledCodecCompressesNothingAndReadsEverything() {
    Codec off = new Codec(CompressionConfiguration.builder().enabled(false).build());
    assertSame(PAGE, off.encode(PAGE));
    byte[] stored = new Codec(CompressionConfiguration.defaults()).encode(PAGE);
    assertArrayEquals(PAGE, off.decode(stored));
  }

  @Test
  void whatCountsAsAnEnvelopeIsEncodedEvenWithoutABackend() {
    Codec none =
        new Codec(CompressionConfiguration.builder().backend(CompressionBackend.NONE).build());
    byte[] forged = {0, 1, 2, 0, 3, 7};
    assertArrayEquals(forged, none.decode(none.encode(forged)));
  }

  @Test
  void aGzipFileIsReadWhereThatIsChosen() {
    byte[] file = GzipFile.of("one ", "and another");
    Codec codec = gzipReader(CompressionConfiguration.builder());
    assertEquals("one and another", new String(codec.decode(file), UTF_8));
    ByteBuffer direct = ByteBuffer.allocateDirect(file.length + 1).put(1, file).position(1);
    assertEquals("one and another", UTF_8.decode(codec.decode(direct, null)).toString());
    assertArrayEquals(PAGE, codec.decode(codec.encode(PAGE)));
    assertSame(file, new Codec(CompressionConfiguration.defaults()).decode(file));
  }

  @Test
  void whatIsNoWholeGzipFileIsAValue() {
    byte[] file = GzipFile.of("<p>hello</p>".repeat(500));
    Codec codec = gzipReader(CompressionConfiguration.builder());
    byte[] otherLength = file.clone();
    otherLength[file.length - 4] ^= 1;
    byte[] otherSum = file.clone();
    otherSum[file.length - 8] ^= 1;
    byte[] otherMethod = file.clone();
    otherMethod[2] = 7;
    for (byte[] value :
        List.of(
            otherLength,
            otherSum,
            otherMethod,
            Arrays.copyOf(file, file.length - 1),
            Arrays.copyOf(file, 3))) {
      assertSame(value, codec.decode(value));
    }
    assertEquals(0, codec.statistics().total(Counter.DECODE_FAILURES));
  }

  @Test
  void aGzipFileOfMoreThanIsAcceptedIsAnError() {
    byte[] bomb = GzipFile.of("x".repeat(1 << 20));
    byte[] key = "bomb".getBytes(UTF_8);
    Codec codec = gzipReader(CompressionConfiguration.builder().maxDecompressedSize(1000));
    UndecodableException error =
        assertThrows(UndecodableException.class, () -> codec.decode(bomb, key));
    assertEquals(UndecodableException.Kind.TOO_LARGE, error.kind());
    assertEquals(-1, error.backend());
    assertArrayEquals(key, error.key().orElseThrow());
    assertArrayEquals(bomb, error.stored());
    assertEquals(
        "cannot decode a GZIP file of "
            + bomb.length
            + " bytes, at key \"bomb\": it holds more than 1000 bytes, and at most 1000 are"
            + " accepted: see maxDecompressedSize",
        error.getMessage());
    assertEquals(1, codec.statistics().total(Counter.DECODE_FAILURES));
    byte[] most = GzipFile.of("x".repeat(1000));
    assertEquals(1000, codec.decode(most).length);
    Codec lenient =
        gzipReader(
            CompressionConfiguration.builder()
                .maxDecompressedSize(1000)
                .onUndecodable(OnUndecodable.RAW));
    assertSame(bomb, lenient.decode(bomb));
  }

  private static Codec gzipReader(CompressionConfiguration.Builder configuration) {
    return new Codec(configuration.readGzip(true).build());
  }

  @Test
  void anErrorNamesKeyBackendAndSize() {
    Codec codec = new Codec(CompressionConfiguration.defaults());
    byte[] stored = {0, 1, 2, 0, 3, 7, 7};
    byte[] key = {'a', '"', (byte) 0xFF};
    UndecodableException error =
        assertThrows(UndecodableException.class, () -> codec.decode(stored, key));
    assertEquals(
        "cannot decode an envelope of 7 bytes, backend 03, at key \"a\\x22\\xff\": its backend is"
            + " unknown: a newer client may have written it",
        error.getMessage());
    assertEquals(3, error.backend());
    assertArrayEquals(key, error.key().orElseThrow());
  }

  @Test
  void rawGivesTheStoredBytes() {
    Codec codec =
        new Codec(CompressionConfiguration.builder().onUndecodable(OnUndecodable.RAW).build());
    byte[] stored = {0, 1, 2, 0, 3};
    assertSame(stored, codec.decode(stored));
    assertEquals(1, codec.statistics().total(Counter.DECODE_FAILURES));
  }

  @Test
  void whatIsToBeMissedIsNull() {
    Codec codec =
        new Codec(CompressionConfiguration.builder().onUndecodable(OnUndecodable.MISS).build());
    byte[] stored = {0, 1, 2, 0, 3};
    assertNull(codec.decode(stored));
    assertNull(codec.decode(ByteBuffer.wrap(stored), null));
    assertEquals(2, codec.statistics().total(Counter.DECODE_FAILURES));
    assertSame(PAGE, codec.decode(PAGE));
  }

  @Test
  void aWarningTellsOfOneMissedValueAMinuteAndOfTheNumberOfOthers() {
    AtomicLong seconds = new AtomicLong(-30);
    List<String> warnings = new ArrayList<>();
    Codec codec =
        new Codec(
            CompressionConfiguration.builder().onUndecodable(OnUndecodable.MISS).build(),
            Dictionaries.NONE,
            new Misses(() -> seconds.get() * 1_000_000_000, warnings::add));
    byte[] stored = {0, 1, 2, 0, 3};
    for (int second = 0; second < 130; second++) {
      codec.decode(stored, ("page:" + second).getBytes(UTF_8));
      seconds.incrementAndGet();
    }
    codec.decode(PAGE);
    assertEquals(List.of(told("page:0", 0), told("page:60", 59), told("page:120", 59)), warnings);
    assertEquals(130, codec.statistics().total(Counter.DECODE_FAILURES));
  }

  private static String told(String key, int others) {
    return "a value counts as missing: cannot decode an envelope of 5 bytes, backend 03, at key \""
        + key
        + "\": its backend is unknown: a newer client may have written it ("
        + others
        + " others since the last of these warnings)";
  }

  @Test
  void onlyWhatIsMissedIsWarnedOf() {
    byte[] stored = {0, 1, 2, 0, 3};
    Misses silent =
        new Misses(
            () -> 0,
            text -> {
              throw new AssertionError(text);
            });
    CompressionConfiguration.Builder settings = CompressionConfiguration.builder();
    Codec raising = new Codec(settings.build(), Dictionaries.NONE, silent);
    assertThrows(UndecodableException.class, () -> raising.decode(stored));
    Codec raw =
        new Codec(settings.onUndecodable(OnUndecodable.RAW).build(), Dictionaries.NONE, silent);
    assertSame(stored, raw.decode(stored));
  }

  @Test
  void valuesOfExcludedKeysAreSentAsTheyAre() {
    Codec codec =
        new Codec(
            CompressionConfiguration.builder()
                .dictionary(profiles())
                .exclude(List.of("lock:*", "token:\u00e9?"))
                .build());
    byte[] page = PAGE.clone();
    assertSame(page, codec.encode(page, "lock:1".getBytes(UTF_8)));
    assertSame(page, codec.encode(page, "token:\u00e9x".getBytes(UTF_8)));
    assertTrue(codec.encode(page, "token:x".getBytes(UTF_8)).length < page.length);
    assertTrue(codec.encode(page, null).length < page.length);
    ByteBuffer target = ByteBuffer.allocate(Codec.maxEncodedSize(page.length));
    codec.encode(ByteBuffer.wrap(page), "lock:1".getBytes(UTF_8), target);
    assertEquals(ByteBuffer.wrap(page), target.flip());
    assertEquals(3, codec.statistics().of(Counter.ENCODED_VALUES, Encoding.IDENTITY));
    assertEquals(0, codec.statistics().total(Counter.SKIPPED_NO_GAIN));
  }

  @Test
  void whatCountsAsAnEnvelopeIsKeptOrWrappedWhateverItsKey() {
    byte[] lock = "lock:1".getBytes(UTF_8);
    byte[] forged = {0, 1, 2, 0, 3, 7};
    CompressionConfiguration.Builder settings =
        CompressionConfiguration.builder().exclude(List.of("lock:*"));
    Codec keeping = new Codec(settings.build());
    byte[] stored = keeping.encode(PAGE);
    assertSame(stored, keeping.encode(stored, lock));
    assertArrayEquals(forged, keeping.decode(keeping.encode(forged, lock), lock));
    Codec wrapping = new Codec(settings.existingEnvelopes(ExistingEnvelopes.WRAP).build());
    assertArrayEquals(stored, wrapping.decode(wrapping.encode(stored, lock), lock));
    assertArrayEquals(PAGE, wrapping.decode(stored, lock), "reading has no exception");
  }

  @Test
  void whoDoesNotKnowKeysTakesNothingThatNeedsThem() {
    Codec codec = new Codec(CompressionConfiguration.builder().exclude(List.of("lock:*")).build());
    ConfigurationException error =
        assertThrows(
            ConfigurationException.class, () -> codec.forValuesWithoutKeys("a serializer"));
    assertEquals(
        "exclude is [lock:*], but a serializer does not know the keys of values: leave it out, or"
            + " give it to a client",
        error.getMessage());
    Codec other = new Codec(CompressionConfiguration.defaults());
    assertSame(other, other.forValuesWithoutKeys("a serializer"));
  }

  @Test
  void valuesOverTheLimitAreSentAsTheyAre() {
    Codec codec = new Codec(CompressionConfiguration.builder().maxDecompressedSize(100).build());
    assertSame(PAGE, codec.encode(PAGE));
    assertEquals(1, codec.statistics().total(Counter.SKIPPED_LARGE));
  }

  @Test
  void aTargetWithoutRoomIsRefusedBeforeAnythingIsWritten() {
    Codec codec = new Codec(CompressionConfiguration.defaults());
    ByteBuffer target = ByteBuffer.allocate(PAGE.length);
    ByteBuffer value = ByteBuffer.wrap(PAGE);
    assertThrows(BufferOverflowException.class, () -> codec.encode(value, null, target));
    assertEquals(0, target.position());
    assertEquals(0, value.position());
    assertThrows(IllegalArgumentException.class, () -> Codec.maxEncodedSize(Integer.MAX_VALUE));
  }

  @Test
  void aTargetThatCannotBeWrittenToIsRefused() {
    Codec codec = new Codec(CompressionConfiguration.defaults());
    ByteBuffer value = ByteBuffer.wrap(PAGE);
    int room = Codec.maxEncodedSize(PAGE.length);
    for (ByteBuffer target : List.of(ByteBuffer.allocate(room), ByteBuffer.allocateDirect(room))) {
      ByteBuffer readOnly = target.asReadOnlyBuffer();
      assertThrows(ReadOnlyBufferException.class, () -> codec.encode(value, null, readOnly));
      assertEquals(0, readOnly.position());
      assertEquals(0, value.position());
    }
  }

  @Test
  void aScratchOfAnyLengthLeavesTheNextValueAlone() {
    Codec codec = new Codec(CompressionConfiguration.defaults());
    for (int length : new int[] {PAGE.length, 3 << 20, PAGE.length, 1 << 20, 5 << 20}) {
      byte[] value = new byte[length];
      System.arraycopy(PAGE, 0, value, 0, PAGE.length);
      assertArrayEquals(value, codec.decode(codec.encode(value)));
    }
  }

  @Test
  void aLargeValueAtAHighLevelIsReadBack() {
    byte[] large = Vectors.noise(3, 300_000);
    System.arraycopy(PAGE, 0, large, 100_000, PAGE.length);
    Codec codec = new Codec(CompressionConfiguration.builder().compressionLevel(19).build());
    for (int round = 0; round < 2; round++) {
      assertArrayEquals(large, codec.decode(codec.encode(large)));
    }
  }

  @Test
  void valuesWithADictionaryAndWithoutTakeTurns() {
    Dictionary dictionary = profiles();
    Codec with = new Codec(CompressionConfiguration.builder().dictionary(dictionary).build());
    Codec without = new Codec(CompressionConfiguration.defaults());
    byte[] value =
        "{\"name\": \"name-62\", \"email\": \"email-63\", \"city\": \"city-64\", \"plan\": 1}"
            .getBytes(UTF_8);
    for (int round = 0; round < 3; round++) {
      byte[] stored = with.encode(value);
      Envelope envelope = Envelope.inspect(stored).orElseThrow();
      assertEquals(0x81, envelope.backend());
      assertEquals(OptionalLong.of(dictionary.id()), envelope.dictionary());
      assertArrayEquals(value, with.decode(stored));
      assertArrayEquals(PAGE, without.decode(without.encode(PAGE)));
      UndecodableException missing =
          assertThrows(UndecodableException.class, () -> without.decode(stored));
      assertEquals(UndecodableException.Kind.DICTIONARY_MISSING, missing.kind());
      assertEquals(dictionary.id(), missing.dictionary());
      assertTrue(missing.getMessage().contains(Integer.toString(dictionary.id())));
    }
    assertEquals(3, with.statistics().total(Counter.DICTIONARY_HITS));
    assertEquals(3, without.statistics().total(Counter.DICTIONARY_MISSES));
    assertEquals(3, without.statistics().total(Counter.DECODE_FAILURES));
  }

  @Test
  void aDictionaryThatIsFetchedIsUsed() {
    Dictionary dictionary = profiles();
    AtomicReference<Dictionary> atHand = new AtomicReference<>();
    Dictionaries fetching =
        new Dictionaries() {
          @Override
          public Dictionary forKey(byte[] key) {
            return null;
          }

          @Override
          public Dictionary find(int id) {
            return atHand.get();
          }

          @Override
          public boolean fetch(int id, Budget reply) {
            atHand.set(dictionary);
            return id == dictionary.id();
          }
        };
    byte[] value =
        "{\"name\": \"name-62\", \"email\": \"email-63\", \"city\": \"city-64\"}   ..."
            .getBytes(UTF_8);
    byte[] stored =
        new Codec(CompressionConfiguration.builder().dictionary(dictionary).build()).encode(value);
    Codec reader = new Codec(CompressionConfiguration.defaults(), fetching);
    assertArrayEquals(value, reader.decode(stored));
    assertArrayEquals(value, reader.decode(stored));
    assertEquals(1, reader.statistics().total(Counter.DICTIONARY_MISSES));
    assertEquals(2, reader.statistics().total(Counter.DICTIONARY_HITS));
    assertEquals(0, reader.statistics().total(Counter.DECODE_FAILURES));
  }

  @Test
  void anErrorSaysWhichKeysMayNotBeRead() {
    Dictionaries denied =
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
          public boolean isAllowed() {
            return false;
          }
        };
    byte[] stored =
        new Codec(CompressionConfiguration.builder().dictionary(profiles()).build()).encode(PAGE);
    Codec reader =
        new Codec(CompressionConfiguration.builder().dictionaryPrefix("{shop}").build(), denied);
    UndecodableException error =
        assertThrows(UndecodableException.class, () -> reader.decode(stored));
    assertEquals(UndecodableException.Kind.DICTIONARY_MISSING, error.kind());
    String why = profiles().id() + ", and the keys {shop}:* may not be read: allow GET for them";
    assertTrue(error.getMessage().endsWith(why), error.getMessage());
  }

  @Test
  void inspectSaysWhatTheFirstBytesSay() {
    byte[] stored = new Codec(CompressionConfiguration.defaults()).encode(PAGE);
    assertEquals(
        Optional.of(
            new Envelope(
                1, Optional.of(Encoding.ZSTD), OptionalLong.of(PAGE.length), OptionalLong.empty())),
        Envelope.inspect(stored));
    assertFalse(Envelope.inspect(PAGE).isPresent());
    Envelope unknown = Envelope.inspect(new byte[] {0, 1, 2, 0, (byte) 0x9F}).orElseThrow();
    assertEquals(0x9F, unknown.backend());
    assertTrue(unknown.encoding().isEmpty() && unknown.size().isEmpty());
  }

  @Test
  void aFailingChoiceOfDictionariesDoesNotKeepValuesFromBeingWritten() {
    Codec codec =
        new Codec(
            CompressionConfiguration.defaults(),
            new Dictionaries() {
              @Override
              public Dictionary forKey(byte[] key) {
                throw new IllegalStateException("no dictionary today");
              }

              @Override
              public Dictionary find(int id) {
                return null;
              }
            });
    byte[] value = "again and ".repeat(20).getBytes(UTF_8);
    byte[] stored = codec.encode(value);
    assertTrue(stored.length < value.length);
    assertArrayEquals(value, codec.decode(stored));
    assertEquals(1, codec.statistics().total(Counter.ENCODE_FAILURES));
  }

  @Test
  void aCodecWithoutAClientKnowsNoCatalogue() {
    CompressionConfiguration catalogue = CompressionConfiguration.builder().catalogue(true).build();
    assertThrows(ConfigurationException.class, () -> new Codec(catalogue));
  }

  private static Dictionary profiles() {
    return Dictionary.of(Vectors.dictionary("profiles"));
  }
}
