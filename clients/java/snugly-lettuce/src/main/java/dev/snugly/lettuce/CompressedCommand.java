package dev.snugly.lettuce;

import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.CommandWrapper;
import io.lettuce.core.protocol.RedisCommand;
import io.netty.buffer.ByteBuf;
import java.util.Optional;
import java.util.concurrent.Executor;

/**
 * A command whose values are encoded, and whose reply is restored before the command itself sees
 * it. What is sent is made once, so that it is the same bytes after a redirection or a reconnect.
 */
final class CompressedCommand<K, V, T> extends CommandWrapper<K, V, T> {
  /** Arguments to be sent, or null for those of the command. */
  private final ByteBuf encoded;

  /** Takes the reply, or null if it has no values. */
  private final ReplyRecorder<K, V, T> recorder;

  CompressedCommand(
      RedisCommand<K, V, T> command, ByteBuf encoded, ReplyRecorder<K, V, T> recorder) {
    super(command);
    this.encoded = encoded;
    this.recorder = recorder;
  }

  @Override
  public void encode(ByteBuf buffer) {
    if (recorder != null) {
      recorder.forget();
    }
    if (encoded == null) {
      super.encode(buffer);
    } else {
      buffer.writeBytes(encoded, encoded.readerIndex(), encoded.readableBytes());
    }
  }

  /** The recorder, unless nobody wants the reply: without an output a command ends when sent. */
  @Override
  public CommandOutput<K, V, T> getOutput() {
    CommandOutput<K, V, T> output = super.getOutput();
    return recorder == null || output == null ? output : recorder;
  }

  @Override
  public void complete() {
    Optional<Executor> elsewhere = recorder == null ? Optional.empty() : recorder.elsewhere();
    if (elsewhere.isPresent()) {
      elsewhere.get().execute(this::finish);
    } else {
      finish();
    }
  }

  private void finish() {
    if (recorder != null) {
      try {
        recorder.deliver();
      } catch (RuntimeException | Error error) { // Whoever waits must be told.
        completeExceptionally(error);
        return;
      }
    }
    super.complete();
  }
}
