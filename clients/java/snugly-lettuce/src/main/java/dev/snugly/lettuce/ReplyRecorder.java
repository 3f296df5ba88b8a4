package dev.snugly.lettuce;

import dev.snugly.core.client.Reply;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.RedisCommand;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Executor;
import java.util.function.BiFunction;

/**
 * Takes a reply as it comes over the wire, so that its values can be restored at another time and
 * on another thread, and then tells it to the command's own output as if it came over the wire.
 */
final class ReplyRecorder<K, V, T> extends CommandOutput<K, V, T> {
  /** Events that an output is told, other than strings. */
  private interface Event {
    void tell(CommandOutput<?, ?, ?> output);
  }

  /** An array, map or set: what it has, from left to right. */
  private static final class Aggregate extends ArrayList<Object> {
    private static final long serialVersionUID = 1L;
    private final transient Event opening;

    /** The array that it is an item of, or null. */
    private final transient Aggregate outer;

    /** Number of those that are open while this is, itself included. */
    private final int depth;

    Aggregate(Event opening, Aggregate outer) {
      this.opening = opening;
      this.outer = outer;
      depth = outer == null ? 1 : outer.depth + 1;
    }
  }

  private final RedisCommand<K, V, T> command;
  private final Commands commands;
  private final BiFunction<Object, Reply, Object> restoring;
  private final Reply transaction;
  private final boolean isQueued;

  /** Restores this reply, or all of the transaction. */
  private Reply within;

  /** The array that the next item belongs to, or null. */
  private Aggregate open;

  /** Work to be done, or null while the reply has no strings to look at. */
  private Commands.Work work;

  /** The reply: {@code byte[]}, {@link Event}, {@link Aggregate} or null. */
  private Object reply;

  private boolean hasReply;

  /** Whether the reply is told as it comes, without a copy: it is null, or one plain string. */
  private boolean isPassing;

  /**
   * @param command whose output gets the reply
   * @param restoring makes of a reply one with its values: strings are {@code byte[]}, arrays lists
   * @param transaction restores all that comes with the reply of EXEC, or null outside of a
   *     transaction
   * @param isQueued whether the reply is a part of that of EXEC
   */
  ReplyRecorder(
      RedisCommand<K, V, T> command,
      RedisCodec<K, V> codec,
      Commands commands,
      BiFunction<Object, Reply, Object> restoring,
      Reply transaction,
      boolean isQueued) {
    super(codec, null);
    this.command = command;
    this.commands = commands;
    this.restoring = restoring;
    this.transaction = transaction;
    this.isQueued = isQueued;
  }

  private CommandOutput<K, V, T> target() {
    return command.getOutput();
  }

  /** Executor that is to {@link #deliver()}, or empty for the event loop. */
  Optional<Executor> elsewhere() {
    return hasReply && work != null ? work.elsewhere() : Optional.empty();
  }

  /**
   * Restores the reply and tells it to the command's output.
   *
   * @throws dev.snugly.core.SnuglyException for a value that cannot be read
   */
  void deliver() {
    if (!hasReply) {
      return;
    }
    Object stored = reply;
    Reply restorer = within();
    forget();
    tell(stored, restoring.apply(stored, restorer), 0);
  }

  private Reply within() {
    if (within == null) {
      within = transaction == null ? commands.reply() : transaction;
    }
    return within;
  }

  /**
   * Begins anew: a command that is sent again may have got a part of a reply before its connection
   * was lost.
   */
  void forget() {
    open = null;
    work = null;
    within = null;
    reply = null;
    hasReply = false;
    isPassing = false;
  }

  private void tell(Object stored, Object restored, int depth) {
    CommandOutput<K, V, T> target = target();
    if (stored instanceof Aggregate aggregate) {
      aggregate.opening.tell(target);
      List<?> items = (List<?>) restored;
      for (int index = 0; index < aggregate.size(); index++) {
        tell(aggregate.get(index), items.get(index), depth + 1);
      }
    } else if (stored instanceof Event event) {
      event.tell(target);
    } else {
      target.set(restored == null ? null : ByteBuffer.wrap((byte[]) restored));
    }
    target.complete(depth);
  }

  private void record(Object item) {
    if (open == null) {
      reply = item;
      hasReply = true;
    } else {
      open.add(item);
    }
  }

  private void begin(Event opening) {
    Aggregate aggregate = new Aggregate(opening, open);
    record(aggregate);
    open = aggregate;
  }

  @Override
  public void complete(int depth) {
    while (open != null && open.depth > depth) {
      open = open.outer;
    }
    if (isPassing && depth == 0) {
      isPassing = false;
      target().complete(depth);
    } else if (isQueued && depth == 0) {
      deliverQueued();
    }
  }

  /** The teller of EXEC's reply asks for this one's result next, so it cannot be later. */
  private void deliverQueued() {
    try {
      deliver();
    } catch (RuntimeException error) {
      target().setError(error.getMessage());
    }
  }

  @Override
  public void set(ByteBuffer bytes) {
    if (open == null && (bytes == null || commands.isPlain(bytes))) {
      isPassing = true;
      target().set(bytes == null ? null : commands.codec().decode(bytes, null));
      return;
    }
    if (bytes == null) {
      record(null);
      return;
    }
    byte[] stored = ByteArrayCodec.INSTANCE.decodeValue(bytes);
    if (work == null) {
      work = commands.new Work(within());
    }
    work.add(stored);
    record(stored);
  }

  @Override
  public void setSingle(ByteBuffer bytes) {
    byte[] line = ByteArrayCodec.INSTANCE.decodeValue(bytes);
    record((Event) output -> output.setSingle(ByteBuffer.wrap(line)));
  }

  @Override
  public void setBigNumber(ByteBuffer bytes) {
    byte[] number = ByteArrayCodec.INSTANCE.decodeValue(bytes);
    record((Event) output -> output.setBigNumber(ByteBuffer.wrap(number)));
  }

  @Override
  public void set(long integer) {
    record((Event) output -> output.set(integer));
  }

  @Override
  public void set(double number) {
    record((Event) output -> output.set(number));
  }

  @Override
  public void set(boolean value) {
    record((Event) output -> output.set(value));
  }

  @Override
  public void multi(int count) {
    begin(output -> output.multi(count));
  }

  @Override
  public void multiArray(int count) {
    begin(output -> output.multiArray(count));
  }

  @Override
  public void multiPush(int count) {
    begin(output -> output.multiPush(count));
  }

  @Override
  public void multiMap(int count) {
    begin(output -> output.multiMap(count));
  }

  @Override
  public void multiSet(int count) {
    begin(output -> output.multiSet(count));
  }

  /** An error is told at once: redirections are decided by it. */
  @Override
  public void setError(ByteBuffer error) {
    if (open == null) {
      target().setError(error);
    } else {
      byte[] line = ByteArrayCodec.INSTANCE.decodeValue(error);
      record((Event) output -> output.setError(ByteBuffer.wrap(line)));
    }
  }

  @Override
  public void setError(String error) {
    target().setError(error);
  }

  @Override
  public boolean hasError() {
    return target().hasError();
  }

  @Override
  public String getError() {
    return target().getError();
  }

  @Override
  public T get() {
    return target().get();
  }
}
