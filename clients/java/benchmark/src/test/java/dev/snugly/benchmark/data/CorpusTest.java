package dev.snugly.benchmark.data;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.NotEmpty;
import net.jqwik.api.constraints.Size;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CorpusTest {
  @Test
  void thePatternIsOneCharacterAgainAndAgain() throws IOException {
    assertEquals(List.of("0000000000"), Corpus.of(Corpus.PATTERN, 10).values());
  }

  @Test
  void generatedValuesHaveTheSizeAskedForAndAreTheSameEachTime() throws IOException {
    for (int size : new int[] {1, 100, 4000}) {
      Corpus corpus = Corpus.of(Corpus.JSON, size);
      assertEquals(Corpus.MOST_VALUES, corpus.values().size());
      corpus.values().forEach(value -> assertEquals(size, value.getBytes(UTF_8).length));
      assertEquals(corpus, Corpus.of(Corpus.JSON, size));
    }
    List<String> values = Corpus.of(Corpus.JSON, 100).values();
    assertEquals(values.size(), new HashSet<>(values).size());
  }

  @Test
  void longValuesAreWholeRecordsAndTheBeginningOfOneMore() throws IOException {
    String value = Corpus.of(Corpus.JSON, 4000).value(7);
    int last = value.lastIndexOf("},{\"id\"");
    assertTrue(JsonParser.parseString("[" + value.substring(0, last + 1) + "]").isJsonArray());
  }

  @Test
  void everyNumberHasAValue() throws IOException {
    Corpus corpus = Corpus.of(Corpus.JSON, 100);
    assertEquals(corpus.value(3), corpus.value(3 + Corpus.MOST_VALUES));
  }

  @Test
  void recordsOfAFileAreCutOrContinuedByThoseBehindThem(@TempDir Path folder) throws IOException {
    Path file = Files.writeString(folder.resolve("records.v2.jsonl"), "first\n\nsecond\n");
    Corpus corpus = Corpus.of(file.toString(), 8);
    assertEquals("records.v2", corpus.name());
    assertEquals(List.of("first,se", "second,f"), corpus.values());
  }

  @Test
  void aFileWithoutRecordsIsRefused(@TempDir Path folder) throws IOException {
    Path file = Files.writeString(folder.resolve("empty"), "\n \n");
    IOException error = assertThrows(IOException.class, () -> Corpus.of(file.toString(), 8));
    assertTrue(error.getMessage().contains("no records"), error.getMessage());
  }

  @Property
  void valuesAreNeverLongerThanAskedForAndHaveNoHalfCharacters(
      @ForAll @Size(min = 1, max = 5) List<@NotEmpty String> records,
      @ForAll @IntRange(min = 1, max = 300) int size) {
    // Half a surrogate pair, which is not text, is not in a file either.
    List<String> texts =
        records.stream().map(record -> new String(record.getBytes(UTF_8), UTF_8)).toList();
    List<String> values = Corpus.cut(texts, size);
    assertEquals(texts.size(), values.size());
    String all = String.join(",", texts);
    for (String value : values) {
      int bytes = value.getBytes(UTF_8).length;
      assertTrue(bytes <= size && bytes > size - 4, () -> bytes + " bytes");
      assertFalse(value.contains("\uFFFD") && !all.contains("\uFFFD"));
    }
  }
}
