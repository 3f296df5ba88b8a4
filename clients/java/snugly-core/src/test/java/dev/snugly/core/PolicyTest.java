package dev.snugly.core;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import dev.snugly.core.Policy.Verdict;
import dev.snugly.testing.Vectors;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Which values are tried, and what becomes of the others. */
class PolicyTest {
  private static final int ROUNDS = 2_000;

  @Test
  void aKindOfValuesThatNeverShrinksIsSoonTriedOnlyRarely() {
    assertTrue(tries(new Policy(), noise(1, 1_000)) <= 5 + ROUNDS / 256, "random");
    assertTrue(tries(new Policy(), base64(1, 1_000)) <= 15 + ROUNDS / 64, "base64");
    assertTrue(tries(new Policy(), json(1, 300)) <= 13 + ROUNDS / 16, "JSON");
  }

  @Test
  void transcriptsOfTheSpecificationComeOutAsWritten() {
    JsonObject specified = Vectors.read("policy.json");
    JsonObject values = specified.getAsJsonObject("values");
    for (JsonObject transcript : Vectors.objects(specified.get("transcripts"))) {
      boolean hasDictionary = transcript.get("dictionary").getAsBoolean();
      Policy policy = new Policy();
      for (JsonObject step : Vectors.objects(transcript.get("steps"))) {
        byte[] value = Vectors.expand(values.get(step.get("value").getAsString()));
        for (int time = 0; time < step.get("times").getAsInt(); time++) {
          Verdict verdict = policy.consider(Bytes.of(value, value.length), hasDictionary);
          String wanted = step.get("verdict").getAsString();
          assertEquals(
              wanted, verdict.name().toLowerCase(Locale.ROOT), () -> transcript + " " + step);
          if (step.has("gained")) {
            policy.report(step.get("gained").getAsBoolean());
          }
        }
      }
    }
  }

  @Test
  void valuesLookAsTheSpecificationSays() {
    JsonObject specified = Vectors.read("policy.json");
    JsonObject spreads = specified.getAsJsonObject("spreads");
    for (String name : spreads.keySet()) {
      byte[] value = Vectors.expand(specified.getAsJsonObject("values").get(name));
      Spread seen = Spread.of(Bytes.of(value, value.length), new byte[Spread.SEEN]);
      assertEquals(spreads.get(name).getAsString(), seen.name().toLowerCase(Locale.ROOT), name);
    }
  }

  @Test
  void attemptsNeverStop() {
    for (byte[] value : List.of(noise(1, 1_000), base64(1, 1_000), json(1, 300))) {
      Policy policy = new Policy();
      for (int round = 0; round < 50; round++) {
        tries(policy, value);
      }
      assertTrue(skipsUntilTry(policy, value) <= 256);
    }
  }

  @Test
  void aValueThatShrinksEndsTheBackOff() {
    for (byte[] value : List.of(noise(1, 1_000), base64(1, 1_000), json(1, 300))) {
      Policy policy = new Policy();
      tries(policy, value);
      skipsUntilTry(policy, value);
      policy.report(true);
      for (int round = 0; round < 100; round++) {
        assertEquals(Verdict.TRY, consider(policy, value));
        policy.report(true);
      }
    }
  }

  @Test
  void aRandomValueIsDoubtedAfterAFailureAndOtherValuesAreNot() {
    Policy policy = new Policy();
    assertEquals(Verdict.TRY, consider(policy, noise(1, 20_000)));
    policy.report(false);
    for (int skipped = 0; skipped < 4; skipped++) {
      assertEquals(Verdict.COMPRESSED, consider(policy, noise(2, 20_000)));
    }
    assertEquals(Verdict.DOUBTFUL, consider(policy, noise(2, 20_000)));
    policy.report(false);
    assertEquals(Verdict.TRY, consider(policy, base64(1, 20_000)));
    policy.report(false);
    assertEquals(Verdict.TRY, consider(policy, base64(1, 20_000)));
  }

  @Test
  void valuesOfOtherLengthsAndThoseWithADictionaryAreRememberedApart() {
    Policy policy = new Policy();
    tries(policy, noise(1, 1_000));
    assertEquals(Verdict.COMPRESSED, consider(policy, noise(1, 1_000)));
    assertEquals(Verdict.COMPRESSED, consider(policy, noise(1, 600)));
    assertEquals(Verdict.TRY, consider(policy, noise(1, 1_100)));
    byte[] value = noise(1, 1_000);
    assertEquals(Verdict.TRY, policy.consider(Bytes.of(value, value.length), true));
  }

  @Test
  void jsonThatMostlyShrinksIsNeverSkipped() {
    Policy policy = new Policy();
    for (int round = 0; round < ROUNDS; round++) {
      assertEquals(Verdict.TRY, consider(policy, json(round, 300)));
      policy.report(round % 9 > 0);
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"ZSTD", "LZ4"})
  void randomValuesAreHardlyEverTriedAndCounted(CompressionBackend backend) {
    for (int size : new int[] {1_000, 256 << 10}) {
      Codec codec = codec(backend);
      byte[] value = noise(1, size);
      for (int round = 0; round < ROUNDS; round++) {
        assertTrue(isLeftAlone(codec, value));
      }
      Statistics statistics = codec.statistics();
      long tried = statistics.total(Counter.SKIPPED_NO_GAIN);
      assertTrue(tried >= 1 && tried <= 20, () -> tried + " tried");
      assertEquals(ROUNDS, tried + statistics.total(Counter.SKIPPED_COMPRESSED));
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"ZSTD", "LZ4"})
  void compressedFilesAreLeftAloneFromTheFirstOn(CompressionBackend backend) {
    Codec codec = codec(backend);
    for (String magic : List.of("\u001f\u008b\b", "\u0089PNG\r\n\u001a\n", "PK\u0003\u0004")) {
      assertTrue(isLeftAlone(codec, join(magic.getBytes(ISO_8859_1), noise(1, 5_000))), magic);
    }
    assertEquals(3, codec.statistics().total(Counter.SKIPPED_COMPRESSED));
  }

  @ParameterizedTest
  @EnumSource(names = {"ZSTD", "LZ4"})
  void textThatStartsLikeACompressedFileIsCompressed(CompressionBackend backend) {
    for (String start : List.of("GIF89a is a format. ", "BZh, ID3, PK, OggS. ", "RIFF....WEBP ")) {
      byte[] text = join(start.getBytes(UTF_8), json(1, 1_000));
      assertFalse(isLeftAlone(codec(backend), text), start);
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"ZSTD", "LZ4"})
  void randomBlocksThatRepeatAreFoundAmongThoseThatDoNot(CompressionBackend backend) {
    for (int level : new int[] {backend.defaultLevel(), 9}) {
      CompressionConfiguration configuration =
          CompressionConfiguration.builder().backend(backend).compressionLevel(level).build();
      Codec codec = new Codec(configuration);
      for (int round = 0; round < 100; round++) {
        codec.encode(noise(round, 21_000));
      }
      int skipped = 0;
      while (skipped < ROUNDS && isLeftAlone(codec, repeated(skipped))) {
        skipped++;
      }
      assertTrue(skipped >= 1 && skipped <= 256, skipped + " were not found");
      for (int round = 0; round < 100; round++) {
        assertFalse(isLeftAlone(codec, repeated(round)));
      }
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"ZSTD", "LZ4"})
  void whatAFastLevelHasFoundIsCompressedAtTheOneThatWasChosen(CompressionBackend backend) {
    CompressionConfiguration configuration =
        CompressionConfiguration.builder()
            .backend(backend)
            .compressionLevel(backend.highestLevel())
            .build();
    Codec codec = new Codec(configuration);
    codec.encode(noise(1, 21_000));
    byte[] value = repeated(1);
    for (int number = 0; number < 50; number++) {
      // In bytes that are not sampled, so that it looks random still and levels make a difference.
      System.arraycopy(json(number, 21), 0, value, 100 + 21 * number, 21);
    }
    for (int skipped = 0; skipped < 4; skipped++) {
      assertTrue(isLeftAlone(codec, value));
    }
    assertArrayEquals(new Codec(configuration).encode(value), codec.encode(value));
  }

  @ParameterizedTest
  @EnumSource(names = {"ZSTD", "LZ4"})
  void jsonIsCompressedWhateverStandsBetween(CompressionBackend backend) {
    Codec codec = codec(backend);
    for (int round = 0; round < ROUNDS; round++) {
      byte[] value = round % 10 == 9 ? json(round, 1_000) : noise(round, 1_000);
      assertEquals(round % 10 < 9, isLeftAlone(codec, value));
    }
  }

  @Test
  void base64IsCompressedByEntropyCodingAfterNoise() {
    Codec codec = codec(CompressionBackend.ZSTD);
    for (int round = 0; round < 300; round++) {
      byte[] value = round < 50 ? noise(9, 20_000) : base64(round, 20_000);
      assertEquals(round < 50, isLeftAlone(codec, value));
    }
  }

  @Test
  void whatWouldBeMistakenForAnEnvelopeIsAlwaysEncoded() {
    Codec codec = codec(CompressionBackend.ZSTD);
    for (int round = 0; round < 100; round++) {
      codec.encode(noise(round, 1_000));
      byte[] forged = join(new byte[] {0, 1, 2, 0, 1}, noise(round, 995));
      assertArrayEquals(forged, codec.decode(codec.encode(forged)));
    }
  }

  @Test
  void aCodecRemembersNothingOfAnother() {
    Codec codec = codec(CompressionBackend.ZSTD);
    codec.encode(noise(1, 21_000));
    assertTrue(isLeftAlone(codec, repeated(1)));
    assertFalse(isLeftAlone(codec(CompressionBackend.ZSTD), repeated(1)));
  }

  @Test
  void threadsThatMeetAMixtureLoseNothing() throws Exception {
    Codec codec = codec(CompressionBackend.ZSTD);
    int threads = 4 * Workspaces.COUNT;
    ExecutorService executor = Executors.newFixedThreadPool(threads);
    try {
      List<Callable<Void>> tasks = new ArrayList<>();
      for (int task = 0; task < threads; task++) {
        int first = task;
        tasks.add(
            () -> {
              for (int round = 0; round < ROUNDS; round += 2) {
                assertTrue(isLeftAlone(codec, noise(first + round, 1_000)));
                byte[] json = json(first + round, 300);
                assertArrayEquals(json, codec.decode(codec.encode(json)));
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
    Statistics statistics = codec.statistics();
    long each = (long) threads * ROUNDS / 2;
    assertEquals(each, statistics.of(Counter.ENCODED_VALUES, Encoding.ZSTD));
    assertEquals(
        each,
        statistics.total(Counter.SKIPPED_COMPRESSED) + statistics.total(Counter.SKIPPED_NO_GAIN));
  }

  /** Number of {@link #ROUNDS} values that are tried if none of them shrinks. */
  private static int tries(Policy policy, byte[] value) {
    int tries = 0;
    for (int round = 0; round < ROUNDS; round++) {
      if (consider(policy, value).skipped == null) {
        policy.report(false);
        tries++;
      }
    }
    return tries;
  }

  /**
   * Number of such values that are skipped before one is to be tried, whose report is still due.
   */
  private static int skipsUntilTry(Policy policy, byte[] value) {
    int skips = 0;
    while (skips < ROUNDS && consider(policy, value).skipped != null) {
      skips++;
    }
    return skips;
  }

  private static Verdict consider(Policy policy, byte[] value) {
    return policy.consider(Bytes.of(value, value.length), false);
  }

  private static boolean isLeftAlone(Codec codec, byte[] value) {
    return codec.encode(value) == value;
  }

  private static Codec codec(CompressionBackend backend) {
    return new Codec(CompressionConfiguration.builder().backend(backend).build());
  }

  private static byte[] noise(int seed, int size) {
    return Vectors.noise(seed, size);
  }

  /** Random symbols, of which there are 64. */
  private static byte[] base64(int seed, int size) {
    byte[] value = noise(seed, size);
    for (int at = 0; at < size; at++) {
      value[at] = (byte) (' ' + (value[at] & 63));
    }
    return value;
  }

  private static byte[] json(int number, int size) {
    String record = "{\"id\":" + number + ",\"name\":\"customer " + number + "\",\"active\":true},";
    return record.repeat(size / record.length() + 1).substring(0, size).getBytes(UTF_8);
  }

  /** A random block, seven times, so that no two places in a sample of it are the same. */
  private static byte[] repeated(int seed) {
    byte[] block = noise(seed, 3_000);
    byte[] value = new byte[7 * block.length];
    for (int at = 0; at < value.length; at += block.length) {
      System.arraycopy(block, 0, value, at, block.length);
    }
    return value;
  }

  private static byte[] join(byte[] first, byte[] second) {
    byte[] joined = Arrays.copyOf(first, first.length + second.length);
    System.arraycopy(second, 0, joined, first.length, second.length);
    return joined;
  }
}
