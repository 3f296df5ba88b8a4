package dev.snugly.core.client;

import dev.snugly.core.Codec;
import dev.snugly.core.CommandRefusedException;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Counter;
import dev.snugly.core.Envelope;
import dev.snugly.core.Statistics;
import dev.snugly.core.catalogue.DictionaryServer;
import dev.snugly.core.catalogue.Keeper;
import dev.snugly.core.commands.CommandTable;
import dev.snugly.core.commands.Request;
import dev.snugly.core.commands.Row;
import java.util.List;
import java.util.OptionalLong;
import java.util.function.BinaryOperator;
import java.util.function.Supplier;

/**
 * Encodes the values in the commands of one client and restores those in its replies, for any
 * number of threads.
 */
public final class Compressor implements AutoCloseable {
  private final Codec codec;
  private final BinaryOperator<byte[]> encode;
  private final Keeper keeper;
  private final CommandTable table;

  /**
   * A compressor for a client.
   *
   * @param configuration how to compress
   * @param servers opens a way to the server that the client's values come from
   */
  public Compressor(
      CompressionConfiguration configuration, Supplier<? extends DictionaryServer> servers) {
    keeper = new Keeper(configuration, servers, counter -> codec().count(counter));
    codec = new Codec(configuration, keeper);
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
   * Says what is to be done with a command of this name.
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

  /**
   * Says whether restoring a value would wait for its dictionary.
   *
   * @param envelope what the value is stored as
   * @return true if it is written with a dictionary that is not at hand
   */
  public boolean needsFetch(Envelope envelope) {
    OptionalLong id = envelope.dictionary();
    return id.isPresent() && keeper.find((int) id.getAsLong()) == null;
  }

  /**
   * Gets a dictionary that is not at hand, and waits for it. After one that is not found, restoring
   * a value with it fails at once.
   *
   * @param id its ID
   */
  public void fetch(long id) {
    // One that is not found is counted by whoever restores a value with it.
    if (keeper.fetch((int) id)) {
      codec.count(Counter.DICTIONARY_MISSES);
    }
  }

  /** Ends the thread that looks after dictionaries, if there is one. */
  @Override
  public void close() {
    keeper.close();
  }
}
