package dev.snugly.core.client;

import dev.snugly.core.Budget;
import dev.snugly.core.Counter;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

/**
 * Restores the values of one reply, or of all that came together, within what these may take, and
 * without waiting for dictionaries for longer than for a reply.
 */
public final class Reply {
  private final Compressor compressor;
  private final Budget budget;

  Reply(Compressor compressor) {
    this.compressor = compressor;
    budget = new Budget(compressor.codec().configuration());
  }

  /**
   * Restores one value.
   *
   * @param stored what is in the reply
   * @param key the key that it belongs to, or null if nobody knows
   * @return the value; null for one that is to be missed
   * @throws dev.snugly.core.UndecodableException for what cannot be read
   */
  public byte[] value(byte[] stored, byte[] key) {
    return compressor.codec().decode(stored, key, budget);
  }

  /**
   * Gets the dictionaries that it needs and that are not at hand, all at once: restored one after
   * another, the values would wait for each dictionary in turn.
   *
   * @param replies as they came: bulk strings are {@code byte[]}, arrays lists, maps maps or lists
   *     of entries
   */
  public void gather(Object replies) {
    Set<Integer> missing = new HashSet<>();
    collect(replies, missing);
    // Restoring does the same for one, and has the error.
    if (missing.size() > 1) {
      compressor.dictionaries().fetchAll(missing, budget);
      missing.forEach(this::countFound);
    }
  }

  private void collect(Object reply, Set<Integer> missing) {
    if (reply instanceof byte[] stored) {
      int id = compressor.missingDictionary(stored);
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

  /**
   * Gets dictionaries that are not at hand, without waiting here. After one that is not found,
   * restoring a value with it fails at once.
   *
   * @param ids their IDs
   * @return ends, and never fails, when they have been looked for
   */
  public CompletableFuture<Void> look(Collection<Long> ids) {
    List<Integer> all = ids.stream().map(Long::intValue).toList();
    return compressor.dictionaries().look(all, budget).thenRun(() -> all.forEach(this::countFound));
  }

  /** One that is not found is counted by whoever restores a value with it. */
  private void countFound(int id) {
    if (compressor.dictionaries().find(id) != null) {
      compressor.codec().count(Counter.DICTIONARY_MISSES);
    }
  }
}
