package dev.snugly.core;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import dev.snugly.testing.Vectors;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Recognition of compressed formats by their first bytes. */
class MagicTest {
  @Test
  void everyFormatIsRecognizedByItsFirstBytes() {
    for (Magic magic : Magic.TABLE) {
      String before = "\0".repeat(magic.offset());
      String value = (magic.bytes().equals("WEBP") ? "RIFFsize" : before) + magic.bytes();
      assertTrue(matches(value), value);
      assertFalse(matches(value.substring(0, value.length() - 1)), () -> value + " cut off");
    }
  }

  @Test
  void theTableIsThatOfTheSpecification() {
    List<Magic> specified = new ArrayList<>();
    for (JsonObject row : Vectors.objects(Vectors.data("magic.json"))) {
      byte[] bytes = HexFormat.of().parseHex(row.get("hex").getAsString());
      specified.add(new Magic(row.get("offset").getAsInt(), new String(bytes, ISO_8859_1)));
    }
    assertEquals(specified, Magic.TABLE);
  }

  @Test
  void textAndNumbersHaveNoMagic() {
    List<String> values =
        List.of(
            "", "{\"a\": 1}", "[1, 2]", "<html>", "name,price", "12345", "\0\0\0\u0001", "RIFF");
    for (String value : values) {
      assertFalse(matches(value), value);
    }
  }

  /** The bytes in an array, and in a direct buffer that begins elsewhere. */
  private static boolean matches(String value) {
    byte[] bytes = value.getBytes(ISO_8859_1);
    ByteBuffer buffer = ByteBuffer.allocateDirect(3 + bytes.length).position(3).put(bytes);
    boolean matches = Magic.matches(Bytes.of(bytes, bytes.length));
    return matches && Magic.matches(Bytes.of(buffer.flip().position(3)));
  }
}
