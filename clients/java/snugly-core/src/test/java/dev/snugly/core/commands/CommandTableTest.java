package dev.snugly.core.commands;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.CommandRefusedException;
import dev.snugly.core.ValueType;
import dev.snugly.testing.GzipFile;
import dev.snugly.testing.Vectors;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Commands of the table, in its own language. */
class CommandTableTest {
  private static final Set<ValueType> ALL = EnumSet.allOf(ValueType.class);
  private static final Set<ValueType> STRINGS = Set.of(ValueType.STRINGS);
  private static final CommandTable TABLE = CommandTable.of(ALL, false);

  /** Encoded values are written here as {@code <key:value>}, and restored ones as well. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "SET k v | SET k <k:v>",
        "set k v EX 10 | set k <k:v> EX 10",
        "SET k v NX get | SET k <k:v> NX get",
        "SETEX k 10 v | SETEX k 10 <k:v>",
        "MSET a 1 b 2 | MSET a <a:1> b <b:2>",
        "MSET a 1 b | MSET a 1 b",
        "MSETEX 2 a 1 b 2 EX 10 | MSETEX 2 a <a:1> b <b:2> EX 10",
        "MSETEX x a 1 | MSETEX x a 1",
        "HSET h f 1 g 2 | HSET h f <h:1> g <h:2>",
        "HSETEX h FNX EX 10 FIELDS 2 f 1 g 2 | HSETEX h FNX EX 10 FIELDS 2 f <h:1> g <h:2>",
        "RPUSH l a b c | RPUSH l <l:a> <l:b> <l:c>",
        "LINSERT l BEFORE a b | LINSERT l BEFORE a <l:b>",
        "XADD s MAXLEN ~ 100 * f 1 g 2 | XADD s MAXLEN ~ 100 * f <s:1> g <s:2>",
        "XADD s NOMKSTREAM 1-* f 1 | XADD s NOMKSTREAM 1-* f <s:1>",
        "XADD s MAXLEN * f 1 | XADD s MAXLEN * f 1",
      })
  void valuesAreEncodedWhereTheyAre(String given, String wanted) {
    Row row = TABLE.row(bytes(given.split(" ", -1)[0]));
    for (int round = 0; round < 2; round++) {
      List<String> sent = new ArrayList<>();
      row.request(words(given), CommandTableTest::marked).words().forEach(w -> sent.add(text(w)));
      assertEquals(wanted, String.join(" ", sent));
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "GET k | false",
        "SET k short | false",
        "SET k longer | true",
        "SET k longer IFNE | false",
        "MSET a short b short | false",
        "MSET a short b longer c short | true",
      })
  void aCommandWhoseValuesAllStayAsTheyAreIsNotEncoded(String command, boolean isEncoded) {
    List<byte[]> words = words(command);
    Request request =
        TABLE
            .row(words.get(0))
            .request(words, (value, key) -> value.length > 5 ? marked(value, key) : value);
    assertEquals(isEncoded, request.isEncoded());
    if (!isEncoded) {
      assertSame(words, request.words());
    }
  }

  @Test
  void onlyTheTypesThatAreChosenAreTouched() {
    CommandTable table = CommandTable.of(STRINGS, false);
    assertNotNull(table.row(bytes("get")));
    for (String name : List.of("HSET", "LPUSH", "XADD", "INCR", "DEL", "EVAL", "NOSUCHCOMMAND")) {
      assertNull(table.row(bytes(name)), name);
    }
    assertNull(table.row(new byte[1000]));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "APPEND k v",
        "STRLEN k",
        "SET k v IFEQ old",
        "BITOP AND a b",
        "LCS a b",
        "SORT k BY w GET p",
        "LINSERT l BEFORE 0123456789012345678901234567890123 x",
        "LREM l 0 x",
        "HSTRLEN h f",
      })
  void whatWouldWorkOnCompressedBytesIsRefused(String command) {
    Row row = TABLE.row(bytes(command.split(" ", -1)[0]));
    CommandRefusedException error =
        assertThrows(
            CommandRefusedException.class,
            () -> row.request(words(command), CommandTableTest::marked));
    assertEquals(command.split(" ", -1)[0], error.command());
    assertTrue(
        error
            .getMessage()
            .startsWith(error.command() + " is refused because compression is on: the server"));
  }

  @Test
  void sortIsRefusedOnlyWithWhatWouldReadValues() {
    Row row = CommandTable.of(STRINGS, false).row(bytes("SORT"));
    row.request(words("SORT k BY w LIMIT 0 5"), CommandTableTest::marked);
    assertThrows(
        CommandRefusedException.class,
        () -> row.request(words("SORT k GET p"), CommandTableTest::marked));
  }

  @Test
  void aReplyIsRestoredByItsShape() {
    assertEquals("<k:v>", restored("GET k", bytes("v")));
    assertEquals(
        "[<a:1>, null, <c:3>]", restored("MGET a b c", list(bytes("1"), null, bytes("3"))));
    assertEquals("v", restored("SET k v EX 10", bytes("v")));
    assertEquals("<k:v>", restored("SET k v GET", bytes("v")));
    assertEquals("[f, <h:1>, g, <h:2>]", restored("HGETALL h", list("f", "1", "g", "2")));
    assertEquals("{f=<h:1>}", restored("HGETALL h", Map.of(bytes("f"), bytes("1"))));
    assertEquals("[[f, <h:1>]]", restored("HRANDFIELD h 1 WITHVALUES", list(list("f", "1"))));
    assertEquals("[f, g]", restored("HRANDFIELD h 2", list("f", "g")));
    assertEquals("[0, [f, <h:1>]]", restored("HSCAN h 0", list("0", list("f", "1"))));
    assertEquals("[0, [f, g]]", restored("HSCAN h 0 NOVALUES", list("0", list("f", "g"))));
    assertEquals("<l:a>", restored("LPOP l", bytes("a")));
    assertEquals("[<l:a>, <l:b>]", restored("LPOP l 2", list("a", "b")));
    assertEquals("[b, <b:1>]", restored("BLPOP a b 0", list("b", "1")));
    assertEquals("[b, [<b:1>]]", restored("LMPOP 2 a b LEFT", list("b", list("1"))));
    assertEquals(
        "[[s, [[1-0, [f, <s:1>]]]]]",
        restored("XREAD STREAMS s 0", list(list("s", list(list("1-0", list("f", "1")))))));
    assertEquals(
        "[[1-0, null], [2-0, [f, <s:1>]]]",
        restored("XRANGE s - +", list(list("1-0", null), list("2-0", list("f", "1")))));
    assertEquals("null", restored("GET k", null));
    assertEquals("7", restored("LRANGE l 0 1", 7L));
  }

  @Test
  void entriesOfALibraryAreMadeByIt() {
    Request request = TABLE.row(bytes("HGETALL")).request(words("HGETALL h"), (v, k) -> v);
    Object reply = request.restore(list(Map.entry(bytes("f"), bytes("1"))), (v, k) -> marked(v, k));
    assertEquals("[f=<h:1>]", show(reply));
  }

  @Test
  void gzipFilesAreRestoredInRepliesOfEveryKindWhereTheyAreRead() {
    CommandTable table = CommandTable.of(STRINGS, true);
    byte[] file = GzipFile.of("page");
    byte[] envelope = {0, 1, 2, 0, 1, 7};
    for (String command : List.of("HGETALL k", "SORT k ALPHA", "NOSUCHCOMMAND k")) {
      Row row = table.row(bytes(command.split(" ", -1)[0]));
      Request request = row.request(words(command), (value, key) -> value);
      assertEquals(words(command).size(), request.words().size());
      Object reply = list("text", 7L, null, list(file), Map.entry(bytes("f"), file), envelope);
      assertEquals(
          "[text, 7, null, [<?:%1$s>], f=<?:%1$s>, %2$s]".formatted(text(file), text(envelope)),
          show(request.restore(reply, CommandTableTest::marked)));
    }
    assertNotNull(table.row(new byte[1000]));
    Row get = table.row(bytes("GET"));
    assertEquals(
        "<k:v>",
        show(
            get.request(words("GET k"), (v, k) -> v)
                .restore(bytes("v"), CommandTableTest::marked)));
  }

  @Test
  void theGivenCommandAndReplyStayAsTheyWere() {
    List<byte[]> words = words("MSET a 1 b 2");
    List<byte[]> copy = List.copyOf(words);
    TABLE.row(bytes("MSET")).request(words, CommandTableTest::marked);
    assertEquals(copy, words);
  }

  @Test
  void theTableIsTheOneOfTheSpecification() throws IOException {
    byte[] wanted = Files.readAllBytes(Vectors.specification().resolve("commands.json"));
    try (InputStream packaged = CommandTable.class.getResourceAsStream("commands.json")) {
      assertArrayEquals(wanted, packaged.readAllBytes());
    }
    assertTrue(TABLE.names().containsAll(Set.of("SET", "INCR", "DEL", "EXEC")));
    assertFalse(TABLE.names().contains("NOSUCHCOMMAND"));
  }

  @Property(tries = 1000)
  void anyArgumentsAreSentOrRefused(@ForAll("commands") List<String> command) {
    List<byte[]> words = command.stream().map(CommandTableTest::bytes).toList();
    Row row = TABLE.row(words.get(0));
    if (row == null) {
      return;
    }
    try {
      Request request = row.request(words, CommandTableTest::marked);
      assertEquals(words.size(), request.words().size());
    } catch (CommandRefusedException error) {
      assertEquals(command.get(0), error.command());
    }
  }

  @Provide
  Arbitrary<List<String>> commands() {
    Arbitrary<String> names = Arbitraries.of(TABLE.names().stream().sorted().toList());
    Arbitrary<String> words =
        Arbitraries.of(
            "k", "v", "1", "2", "EX", "GET", "FIELDS", "*", "MAXLEN", "~", "", "IFEQ", "BY", "-1");
    return names.flatMap(
        name ->
            words
                .list()
                .ofMaxSize(8)
                .map(
                    rest -> {
                      List<String> command = new ArrayList<>(List.of(name));
                      command.addAll(rest);
                      return command;
                    }));
  }

  private static String restored(String command, Object reply) {
    Row row = TABLE.row(bytes(command.split(" ", -1)[0]));
    Request request = row.request(words(command), (value, key) -> value);
    return show(request.restore(reply, CommandTableTest::marked));
  }

  private static byte[] marked(byte[] value, byte[] key) {
    return bytes("<" + (key == null ? "?" : text(key)) + ":" + text(value) + ">");
  }

  private static List<Object> list(Object... items) {
    List<Object> list = new ArrayList<>();
    Arrays.asList(items).forEach(item -> list.add(item instanceof String s ? bytes(s) : item));
    return list;
  }

  private static String show(Object reply) {
    if (reply instanceof byte[] value) {
      return text(value);
    }
    if (reply instanceof List<?> items) {
      return items.stream().map(CommandTableTest::show).toList().toString();
    }
    if (reply instanceof Map.Entry<?, ?> entry) {
      return show(entry.getKey()) + "=" + show(entry.getValue());
    }
    if (reply instanceof Map<?, ?> map) {
      Map<String, String> shown = new LinkedHashMap<>();
      map.forEach((key, value) -> shown.put(show(key), show(value)));
      return shown.toString();
    }
    return String.valueOf(reply);
  }

  private static List<byte[]> words(String command) {
    return Arrays.stream(command.split(" ", -1)).map(CommandTableTest::bytes).toList();
  }

  private static byte[] bytes(String text) {
    return text.getBytes(ISO_8859_1);
  }

  private static String text(byte[] bytes) {
    return new String(bytes, ISO_8859_1);
  }
}
