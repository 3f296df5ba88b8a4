package dev.snugly.testing;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.zip.GZIPOutputStream;

/** GZIP files, as others than snugly write them. */
public final class GzipFile {
  private GzipFile() {}

  /**
   * Returns a file with one member for each part; its trailer tells the length of the last alone.
   *
   * @param parts what is in it, one after another
   */
  public static byte[] of(String... parts) {
    ByteArrayOutputStream file = new ByteArrayOutputStream();
    for (String part : parts) {
      try (GZIPOutputStream member = new GZIPOutputStream(file)) {
        member.write(part.getBytes(StandardCharsets.UTF_8));
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }
    return file.toByteArray();
  }
}
