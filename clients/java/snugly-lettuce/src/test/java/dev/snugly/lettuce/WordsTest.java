package dev.snugly.lettuce;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.netty.buffer.ByteBuf;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class WordsTest {
  private static final RedisCodec<String, String> CODEC = StringCodec.UTF8;

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 1000, 30_000, 1_000_000})
  void aCommandIsItsNameAndItsArgumentsHoweverLongTheyAre(int length) {
    String value = "ü".repeat(length);
    Words words = Words.of(set("key", value));
    assertEquals(3, words.size());
    assertEquals(List.of("SET", "key", value), texts(words));
    assertEquals(sent("SET", "key", value), words.encoded().toString(UTF_8));
  }

  @Test
  void aCommandWithoutArgumentsIsItsNameAlone() {
    Words words = Words.of(new Command<>(CommandType.PING, new StatusOutput<>(CODEC)));
    assertEquals(List.of("PING"), texts(words));
  }

  @Test
  void aCommandOfOtherWordsIsWrittenAsLettuceWritesIt() {
    ByteBuf encoded = Words.encoded(Words.of(set("key", "value")));
    assertEquals(sent("SET", "key", "value"), encoded.toString(UTF_8));
  }

  @Test
  void whatIsEncodedStaysWhenItIsReadAndSent() {
    Words words = Words.of(set("key", "value"));
    String sent = words.encoded().toString(UTF_8);
    texts(words);
    CompressedCommand<String, String, String> command =
        new CompressedCommand<>(set("key", "another"), words.encoded(), null);
    for (int round = 0; round < 2; round++) {
      ByteBuf buffer = CallersBuffers.INSTANCE.buffer();
      command.encode(buffer);
      assertEquals(sent, buffer.toString(UTF_8));
    }
  }

  @Test
  void longBuffersOfCodecsAreNotOfTheHeap() {
    ByteBuf longer = CallersBuffers.INSTANCE.buffer(1 << 16);
    try {
      assertTrue(longer.isDirect());
      assertFalse(CallersBuffers.INSTANCE.buffer(1 << 10).isDirect());
    } finally {
      longer.release();
    }
  }

  private static Command<String, String, String> set(String key, String value) {
    return new Command<>(
        CommandType.SET,
        new StatusOutput<>(CODEC),
        new CommandArgs<>(CODEC).addKey(key).addValue(value));
  }

  private static List<String> texts(Words words) {
    return words.stream().map(word -> new String(word, UTF_8)).toList();
  }

  private static String sent(String... words) {
    StringBuilder sent = new StringBuilder("*" + words.length + "\r\n");
    for (String word : words) {
      sent.append("$" + word.getBytes(UTF_8).length + "\r\n" + word + "\r\n");
    }
    return sent.toString();
  }
}
