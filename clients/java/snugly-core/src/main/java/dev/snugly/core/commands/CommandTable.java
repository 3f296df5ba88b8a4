package dev.snugly.core.commands;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import dev.snugly.core.ValueType;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The rows that count for a client that compresses values of some types. */
public final class CommandTable {
  private static final String RESOURCE = "commands.json";

  /** The longest name of a command that is looked for, in bytes. */
  private static final int LONGEST_NAME = 32;

  private static final Map<Readers, CommandTable> TABLES = new ConcurrentHashMap<>();

  /** Clients with the same table. */
  private record Readers(Set<ValueType> types, boolean readGzip) {}

  private final Map<String, Row> rows = new HashMap<>();
  private final Set<String> names = new HashSet<>();

  /** Row of commands that have none of their own, or null if they pass as they are. */
  private final Row others;

  private CommandTable(Readers readers, JsonObject table) {
    Shapes shapes = new Shapes(table.getAsJsonObject("shapes"));
    Shape unvalued = readers.readGzip ? Shapes::files : null;
    others =
        unvalued == null ? null : new Row("", new JsonObject(), Set.of(), table, shapes, unvalued);
    JsonObject commands = table.getAsJsonObject("commands");
    for (String name : commands.keySet()) {
      Row row =
          new Row(name, commands.getAsJsonObject(name), readers.types, table, shapes, unvalued);
      names.add(name);
      if (row.carriesValues() || row.mayBeRefused()) {
        rows.put(name, row);
      }
    }
    table.getAsJsonArray("numbers").forEach(name -> names.add(name.getAsString()));
    JsonObject untouched = table.getAsJsonObject("untouched");
    for (String heading : untouched.keySet()) {
      untouched.getAsJsonArray(heading).forEach(name -> names.add(name.getAsString()));
    }
  }

  /**
   * Returns the table for clients that compress values of these types. It is read once.
   *
   * @param types some types of values
   * @param readGzip whether values that are GZIP files are restored in replies to all other
   *     commands
   */
  public static CommandTable of(Set<ValueType> types, boolean readGzip) {
    Set<ValueType> key =
        types.isEmpty() ? Set.of() : Collections.unmodifiableSet(EnumSet.copyOf(types));
    return TABLES.computeIfAbsent(
        new Readers(key, readGzip), each -> new CommandTable(each, read()));
  }

  private static JsonObject read() {
    try (InputStream resource = CommandTable.class.getResourceAsStream(RESOURCE);
        Reader text = new InputStreamReader(resource, StandardCharsets.UTF_8)) {
      return JsonParser.parseReader(text).getAsJsonObject();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /**
   * Returns what is to be done with a command, or null if it passes as it is.
   *
   * @param name the command's name, in any case
   */
  public Row row(byte[] name) {
    if (name.length > LONGEST_NAME) {
      return others;
    }
    return rows.getOrDefault(
        new String(name, StandardCharsets.ISO_8859_1).toUpperCase(Locale.ROOT), others);
  }

  /** Returns the names of all commands that the table knows, in capitals. */
  public Set<String> names() {
    return Collections.unmodifiableSet(names);
  }
}
