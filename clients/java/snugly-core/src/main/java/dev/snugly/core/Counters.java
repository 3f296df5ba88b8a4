package dev.snugly.core;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * Counters of one codec.
 *
 * <p>A holder of a {@link Workspace} has a row of numbers to itself, so that counting takes no
 * atomic operation; the last row is for all others.
 */
final class Counters {
  private static final VarHandle CELLS = MethodHandles.arrayElementVarHandle(long[].class);

  private final long[][] rows = new long[Workspaces.COUNT + 1][Counter.CELLS];

  /** Counts for the holder of a workspace. */
  void add(Workspace holder, Counter counter, Encoding encoding, long amount) {
    add(holder, rows[holder.index], counter.cell(encoding), amount);
  }

  private static void add(Workspace holder, long[] row, int cell, long amount) {
    if (holder.index == Workspaces.COUNT) {
      CELLS.getAndAdd(row, cell, amount);
    } else {
      CELLS.setOpaque(row, cell, row[cell] + amount);
    }
  }

  /** Counts one for the holder of a workspace. */
  void increment(Workspace holder, Counter counter) {
    add(holder, counter, Encoding.IDENTITY, 1);
  }

  /** Counts one for anybody. */
  void increment(Counter counter) {
    CELLS.getAndAdd(rows[Workspaces.COUNT], counter.cell(Encoding.IDENTITY), 1L);
  }

  /** Counts a value that is stored. */
  void encoded(Workspace holder, Encoding encoding, int bytesIn, int bytesOut) {
    value(holder, Counter.ENCODED_VALUES.cell(encoding), bytesIn, bytesOut);
  }

  /** Counts a value that was read back. */
  void decoded(Workspace holder, Encoding encoding, int bytesIn, int bytesOut) {
    value(holder, Counter.DECODED_VALUES.cell(encoding), bytesIn, bytesOut);
    if (encoding.needsDictionary()) {
      increment(holder, Counter.DICTIONARY_HITS);
    }
  }

  /** Counts a value and its bytes, whose numbers follow that of values. */
  private void value(Workspace holder, int cell, int bytesIn, int bytesOut) {
    long[] row = rows[holder.index];
    add(holder, row, cell, 1);
    add(holder, row, cell + 1, bytesIn);
    add(holder, row, cell + 2, bytesOut);
  }

  /** Returns the numbers of this moment. */
  Statistics snapshot() {
    long[] sums = new long[Counter.CELLS];
    for (long[] row : rows) {
      for (int cell = 0; cell < sums.length; cell++) {
        sums[cell] += (long) CELLS.getOpaque(row, cell);
      }
    }
    return new Statistics(sums);
  }
}
