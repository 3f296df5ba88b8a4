package dev.snugly.testing;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import net.jpountz.xxhash.XXHashFactory;

/** The test vectors of the specification, and its language for bytes (spec/vectors/README.md). */
public final class Vectors {
  /** A dictionary that others are made of, read once. */
  private static final class Profiles {
    static final byte[] BYTES = dictionary("profiles");
  }

  private Vectors() {}

  /** Returns the folder of the specification, from the system property {@code snugly.spec}. */
  public static Path specification() {
    return Path.of(System.getProperty("snugly.spec"));
  }

  /** Returns a file of the vectors, such as {@code envelopes.json}. */
  public static JsonObject read(String file) {
    return parse(specification().resolve("vectors").resolve(file)).getAsJsonObject();
  }

  /** Returns a file of the data, such as {@code magic.json}. */
  public static JsonElement data(String file) {
    return parse(specification().resolve("data").resolve(file));
  }

  private static JsonElement parse(Path file) {
    try {
      return JsonParser.parseString(Files.readString(file));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /**
   * Returns the bytes of a dictionary that vectors are encoded with.
   *
   * @param name as in the head of {@code envelopes.json}, such as {@code profiles}
   */
  public static byte[] dictionary(String name) {
    JsonObject dictionaries = read("envelopes.json").getAsJsonObject("dictionaries");
    return expand(dictionaries.getAsJsonObject(name).get("bytes"));
  }

  /**
   * Returns the bytes of a dictionary that no vector has.
   *
   * @param number another one for each
   */
  public static byte[] otherDictionary(int number) {
    byte[] bytes = Profiles.BYTES.clone();
    ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    buffer.putInt(bytes.length - 4, number);
    long hash = XXHashFactory.safeInstance().hash64().hash(bytes, 8, bytes.length - 8, 0);
    long reserved = 32_768;
    buffer.putInt(4, (int) (reserved + Long.remainderUnsigned(hash, (1L << 31) - reserved)));
    return bytes;
  }

  /** Returns the objects of an array. */
  public static List<JsonObject> objects(JsonElement array) {
    List<JsonObject> objects = new ArrayList<>();
    array.getAsJsonArray().forEach(each -> objects.add(each.getAsJsonObject()));
    return objects;
  }

  /** Returns the bytes that an object describes. */
  public static byte[] expand(JsonElement rule) {
    JsonObject form = rule.getAsJsonObject();
    if (form.has("text")) {
      return form.get("text").getAsString().getBytes(StandardCharsets.UTF_8);
    }
    if (form.has("hex")) {
      return HexFormat.of().parseHex(form.get("hex").getAsString());
    }
    if (form.has("join")) {
      return join(form.getAsJsonArray("join"));
    }
    int size = form.get("size").getAsInt();
    if (form.has("repeat")) {
      return repeat(expand(form.get("repeat")), size);
    }
    if (form.has("count")) {
      return count(form.get("count").getAsString(), size);
    }
    if (form.has("noise")) {
      return noise(form.get("noise").getAsLong(), size);
    }
    throw new IllegalArgumentException("the vectors have bytes of an unknown form: " + form);
  }

  private static byte[] join(JsonArray parts) {
    ByteArrayOutputStream joined = new ByteArrayOutputStream();
    parts.forEach(part -> joined.writeBytes(expand(part)));
    return joined.toByteArray();
  }

  private static byte[] repeat(byte[] part, int size) {
    byte[] bytes = new byte[size];
    for (int at = 0; at < size; at++) {
      bytes[at] = part[at % part.length];
    }
    return bytes;
  }

  private static byte[] count(String text, int size) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    for (int number = 0; bytes.size() < size; number++) {
      String each = text.replace("#", Integer.toString(number));
      bytes.writeBytes(each.getBytes(StandardCharsets.UTF_8));
    }
    return Arrays.copyOf(bytes.toByteArray(), size);
  }

  /** Returns bytes that look random, the same for a seed each time. */
  public static byte[] noise(long seed, int size) {
    byte[] bytes = new byte[size];
    long state = seed;
    for (int at = 0; at < size; at++) {
      state = state * 6364136223846793005L + 1442695040888963407L;
      bytes[at] = (byte) (state >>> 56);
    }
    return bytes;
  }
}
