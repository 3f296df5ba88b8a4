package dev.snugly.lettuce;

import io.lettuce.core.protocol.RedisCommand;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Commands as the server gets them: a RESP array of bulk strings, and what is in it. */
final class Words {
  private Words() {}

  /**
   * A command's name and its arguments. The application's codec encodes them here, on the thread of
   * whoever calls, so that what it throws reaches the caller and leaves no half command behind.
   */
  static List<byte[]> of(RedisCommand<?, ?, ?> command) {
    ByteBuf buffer = PooledByteBufAllocator.DEFAULT.heapBuffer();
    try {
      command.encode(buffer);
      int count = number(buffer);
      List<byte[]> words = new ArrayList<>(count);
      while (words.size() < count) {
        byte[] word = new byte[number(buffer)];
        buffer.readBytes(word);
        buffer.skipBytes(2);
        words.add(word);
      }
      return words;
    } finally {
      buffer.release();
    }
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

  /** Writes a command. */
  static void write(List<byte[]> words, ByteBuf buffer) {
    line(buffer, '*', words.size());
    for (byte[] word : words) {
      line(buffer, '$', word.length);
      buffer.writeBytes(word);
      buffer.writeByte('\r').writeByte('\n');
    }
  }

  private static void line(ByteBuf buffer, char type, int number) {
    buffer.writeByte(type);
    buffer.writeCharSequence(Integer.toString(number), StandardCharsets.US_ASCII);
    buffer.writeByte('\r').writeByte('\n');
  }
}
