package dev.snugly.core.catalogue;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.snugly.core.Dictionary;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;

/** Compares what is asked with one line of a transcript, and gives its answer. */
final class TranscriptDriver implements Request.Driver {
  private final TranscriptWords words;
  private final JsonObject expected;
  private final JsonObject answer;

  TranscriptDriver(TranscriptWords words, JsonObject expected, JsonObject answer) {
    this.words = words;
    this.expected = expected;
    this.answer = answer;
  }

  @Override
  public List<DictionaryReply> send(List<DictionaryCommand> commands) {
    List<List<String>> sent = new ArrayList<>();
    commands.forEach(each -> sent.add(each.words().stream().map(TranscriptDriver::text).toList()));
    assertEquals(expectedCommands(), sent);
    if (answer.has("lost")) {
      DictionaryReply lost = DictionaryReply.lost(answer.get("lost").getAsString());
      return commands.stream().map(each -> lost).toList();
    }
    List<DictionaryReply> replies = new ArrayList<>();
    answer.getAsJsonArray("replies").forEach(each -> replies.add(words.reply(each)));
    return replies;
  }

  private List<List<String>> expectedCommands() {
    isAsked("send");
    List<List<String>> commands = new ArrayList<>();
    for (JsonElement command : expected.getAsJsonArray("send")) {
      List<String> arguments = new ArrayList<>();
      command.getAsJsonArray().forEach(word -> arguments.add(text(words.bytes(word))));
      commands.add(arguments);
    }
    return commands;
  }

  private static String text(byte[] bytes) {
    return new String(bytes, ISO_8859_1);
  }

  private void isAsked(String request) {
    assertTrue(expected.has(request), () -> request + " is asked and not " + expected);
  }

  @Override
  public List<Request.Copy> readCopies(Collection<Integer> ids) {
    isAsked("read_copies");
    assertEquals(words.ids(expected.get("read_copies")), List.copyOf(ids));
    List<Request.Copy> copies = new ArrayList<>();
    for (JsonElement name : answer.getAsJsonArray("copies")) {
      Dictionary copied = words.dictionary(name);
      copies.add(new Request.Copy(copied.id(), "a file", copied.bytes()));
    }
    return copies;
  }

  @Override
  public Optional<String> writeCopies(Collection<Dictionary> dictionaries) {
    isAsked("write_copies");
    assertEquals(
        words.ids(expected.get("write_copies")),
        dictionaries.stream().map(Dictionary::id).toList());
    return Optional.empty();
  }

  @Override
  public void removeCopies(Collection<Integer> ids) {
    isAsked("remove_copies");
    assertEquals(words.ids(expected.get("remove_copies")), List.copyOf(ids));
  }
}
