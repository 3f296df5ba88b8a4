package dev.snugly.core.client;

import dev.snugly.core.Codec;
import dev.snugly.core.CommandRefusedException;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Counter;
import dev.snugly.core.Statistics;
import dev.snugly.core.catalogue.DictionaryServer;
import dev.snugly.core.catalogue.ManagedDictionaries;
import dev.snugly.core.commands.CommandTable;
import dev.snugly.core.commands.Request;
import dev.snugly.core.commands.Row;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.BinaryOperator;
import java.util.function.Supplier;

/**
 * Encodes the values in the commands of one client and restores those in its replies, for any
 * number of threads.
 */
public final class Compressor implements AutoCloseable {
  private final Codec codec;
  private final BinaryOperator<byte[]> encode;
  private final ManagedDictionaries dictionaries;
  private final CommandTable table;

  /**
   * A compressor for a client.
   *
   * @param configuration how to compress
   * @param servers makes connections to the server that the client's values come from
   */
  public Compressor(
      CompressionConfiguration configuration, Supplier<? extends DictionaryServer> servers) {
    dictionaries =
        new ManagedDictionaries(configuration, servers, counter -> codec().count(counter));
    codec = new Codec(configuration, dictionaries);
    encode = codec::encode;
    table = CommandTable.of(configuration.valueTypes(), configuration.readGzip());
  }

  /** Returns what encodes and decodes. */
  public Codec codec() {
    return codec;
  }

  /** Returns what this client has counted. */
  public Statistics statistics() {
    return codec.statistics();
  }

  /**
   * Finds the treatment of a command of this name.
   *
   * @param name in any case
   * @return the row for {@link #request}, or null if such commands pass as they are
   */
  public Row row(byte[] name) {
    return table.row(name);
  }

  /**
   * Makes what is to be sent for a command.
   *
   * @param row that of the command's name
   * @param words the command's name and its arguments; they are only read
   * @return the arguments with their values encoded, and where the reply has values
   * @throws CommandRefusedException if the command must not be sent
   */
  public Request request(Row row, List<byte[]> words) {
    return row.request(words, encode);
  }

  /** Begins to restore a reply, or all that came together. */
  public Reply reply() {
    return new Reply(codec);
  }

  /**
   * Gets the dictionaries that some replies need and that are not at hand, all at once: restored
   * one after another, the values would wait for each dictionary in turn.
   *
   * @param replies as they came: bulk strings are {@code byte[]}, arrays lists, maps maps or lists
   *     of entries
   */
  public void gather(Object replies) {
    Set<Integer> missing = new HashSet<>();
    collect(replies, missing);
    // Restoring does the same for one, and has the error.
    if (missing.size() > 1) {
      dictionaries.fetchAll(missing);
    }
  }

  private void collect(Object reply, Set<Integer> missing) {
    if (reply instanceof byte[] stored) {
      int id = missingDictionary(stored);
      if (id != 0) {
        missing.add(id);
      }
    } else if (reply instanceof Collection<?> list) {
      list.forEach(each -> collect(each, missing));
    } else if (reply instanceof Map<?, ?> map) {
      map.values().forEach(each -> collect(each, missing));
    } else if (reply instanceof Map.Entry<?, ?> entry) {
      collect(entry.getValue(), missing);
    }
  }

  /** Notes that the client has connected again, to a server that may have lost dictionaries. */
  public void connected() {
    dictionaries.connected();
  }

  /**
   * Returns the ID of the dictionary that restoring a value would wait for, unsigned; 0 for none.
   *
   * @param stored what the server has
   */
  public int missingDictionary(byte[] stored) {
    int id = codec.dictionaryOf(stored);
    return id != 0 && dictionaries.find(id) == null ? id : 0;
  }

  /**
   * Gets dictionaries that are not at hand. After one that is not found, restoring a value with it
   * fails at once.
   *
   * @param ids their IDs
   * @return ends, and never fails, when they have been looked for
   */
  public CompletableFuture<Void> look(Collection<Long> ids) {
    List<Integer> all = ids.stream().map(Long::intValue).toList();
    return dictionaries.look(all).thenRun(() -> all.forEach(this::countFound));
  }

  /** One that is not found is counted by whoever restores a value with it. */
  private void countFound(int id) {
    if (dictionaries.find(id) != null) {
      codec.count(Counter.DICTIONARY_MISSES);
    }
  }

  /** Ends the thread that maintains dictionaries, if there is one. */
  @Override
  public void close() {
    dictionaries.close();
  }
}
