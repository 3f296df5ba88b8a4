package dev.snugly.lettuce;

import io.lettuce.core.protocol.RedisCommand;
import io.netty.buffer.ByteBuf;
import java.nio.charset.StandardCharsets;
import java.util.AbstractList;
import java.util.List;

/**
 * A command as the server gets it, a RESP array of bulk strings, and what is in that: the command's
 * name and its arguments.
 */
final class Words extends AbstractList<byte[]> {
  /** Most bytes that a word takes beside its own. */
  private static final int MOST_OVERHEAD = "$2147483647\r\n\r\n".length();

  private final ByteBuf encoded;
  private final int count;

  /** Copies of all, when the first is asked for: of a GET none is, but for what is encoded. */
  private byte[][] words;

  private Words(ByteBuf encoded) {
    this.encoded = encoded;
    count = number(encoded.duplicate());
  }

  /**
   * A command's words. The application's codec encodes them here, on the thread of whoever calls,
   * so that what it throws reaches the caller and leaves no half command behind.
   */
  static Words of(RedisCommand<?, ?, ?> command) {
    ByteBuf buffer = CallersBuffers.INSTANCE.heapBuffer();
    command.encode(buffer);
    return new Words(buffer);
  }

  /** The whole command, which is only read. */
  ByteBuf encoded() {
    return encoded;
  }

  @Override
  public int size() {
    return count;
  }

  @Override
  public byte[] get(int index) {
    if (words == null) {
      words = copies();
    }
    return words[index];
  }

  private byte[][] copies() {
    ByteBuf buffer = encoded.duplicate();
    byte[][] copies = new byte[number(buffer)][];
    for (int index = 0; index < copies.length; index++) {
      copies[index] = new byte[number(buffer)];
      buffer.readBytes(copies[index]);
      buffer.skipBytes(2);
    }
    return copies;
  }

  /** The number of a line such as {@code *3} or {@code $5}. */
  private static int number(ByteBuf buffer) {
    buffer.skipBytes(1);
    int number = 0;
    for (byte digit = buffer.readByte(); digit != '\r'; digit = buffer.readByte()) {
      number = 10 * number + (digit - '0');
    }
    buffer.skipBytes(1);
    return number;
  }

  /** A command of these words. */
  static ByteBuf encoded(List<byte[]> words) {
    int most = MOST_OVERHEAD;
    for (byte[] word : words) {
      most += word.length + MOST_OVERHEAD;
    }
    ByteBuf buffer = CallersBuffers.INSTANCE.heapBuffer(most);
    line(buffer, '*', words.size());
    for (byte[] word : words) {
      line(buffer, '$', word.length);
      buffer.writeBytes(word);
      buffer.writeByte('\r').writeByte('\n');
    }
    return buffer;
  }

  private static void line(ByteBuf buffer, char type, int number) {
    buffer.writeByte(type);
    buffer.writeCharSequence(Integer.toString(number), StandardCharsets.US_ASCII);
    buffer.writeByte('\r').writeByte('\n');
  }
}
