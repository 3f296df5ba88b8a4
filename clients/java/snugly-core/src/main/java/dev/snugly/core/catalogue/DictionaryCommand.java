package dev.snugly.core.catalogue;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** A command about a dictionary or the catalogue. Its key and its value are sent as they are. */
public final class DictionaryCommand {
  private final Verb verb;
  private final byte[] key;
  private final byte[] value;

  /** The commands that there are. */
  public enum Verb {
    /** GET, whose reply is the value as it is stored. */
    GET,
    /** TOUCH, whose reply is the number of keys that are there. */
    TOUCH,
    /** SET, whatever was there. */
    SET,
    /** SET with NX, whose reply is null if something was there. */
    SET_IF_ABSENT,
  }

  private DictionaryCommand(Verb verb, byte[] key, byte[] value) {
    this.verb = verb;
    this.key = key;
    this.value = value;
  }

  static DictionaryCommand get(byte[] key) {
    return new DictionaryCommand(Verb.GET, key, null);
  }

  static DictionaryCommand touch(byte[] key) {
    return new DictionaryCommand(Verb.TOUCH, key, null);
  }

  static DictionaryCommand set(byte[] key, byte[] value) {
    return new DictionaryCommand(Verb.SET, key, value);
  }

  static DictionaryCommand setIfAbsent(byte[] key, byte[] value) {
    return new DictionaryCommand(Verb.SET_IF_ABSENT, key, value);
  }

  /** Returns which command it is. */
  public Verb verb() {
    return verb;
  }

  /** Returns the one key that it has. */
  public byte[] key() {
    return key;
  }

  /** Returns what is stored there, or null for commands that store nothing. */
  public byte[] value() {
    return value;
  }

  /** Returns the command's name and its arguments, as they are sent. */
  public List<byte[]> words() {
    List<byte[]> words = new ArrayList<>();
    words.add(ascii(verb == Verb.SET_IF_ABSENT ? "SET" : verb.name()));
    words.add(key);
    if (value != null) {
      words.add(value);
    }
    if (verb == Verb.SET_IF_ABSENT) {
      words.add(ascii("NX"));
    }
    return words;
  }

  private static byte[] ascii(String word) {
    return word.getBytes(StandardCharsets.US_ASCII);
  }
}
