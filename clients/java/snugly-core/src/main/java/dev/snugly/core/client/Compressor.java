package dev.snugly.core.client;

import dev.snugly.core.Codec;
import dev.snugly.core.CommandRefusedException;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Statistics;
import dev.snugly.core.catalogue.DictionaryServer;
import dev.snugly.core.catalogue.ManagedDictionaries;
import dev.snugly.core.commands.CommandTable;
import dev.snugly.core.commands.Request;
import dev.snugly.core.commands.Row;
import java.time.Duration;
import java.util.List;
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
   * @param readTimeout how long the client waits for a reply, zero for any time: dictionaries are
   *     waited for no longer
   */
  public Compressor(
      CompressionConfiguration configuration,
      Supplier<? extends DictionaryServer> servers,
      Supplier<Duration> readTimeout) {
    dictionaries =
        new ManagedDictionaries(
            configuration, servers, readTimeout, counter -> codec().count(counter));
    codec = new Codec(configuration, dictionaries);
    encode = codec::encode;
    table = CommandTable.of(configuration.valueTypes(), configuration.readGzip());
  }

  /** Returns what encodes and decodes. */
  public Codec codec() {
    return codec;
  }

  ManagedDictionaries dictionaries() {
    return dictionaries;
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
    return new Reply(this);
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

  /** Ends the thread that maintains dictionaries, if there is one. */
  @Override
  public void close() {
    dictionaries.close();
  }
}
