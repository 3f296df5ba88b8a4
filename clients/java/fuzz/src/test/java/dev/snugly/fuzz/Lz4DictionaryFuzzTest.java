package dev.snugly.fuzz;

import com.code_intelligence.jazzer.junit.FuzzTest;
import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Dictionary;
import dev.snugly.core.UndecodableException;
import dev.snugly.testing.Vectors;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Foreign lengths, checksums and blocks with a dictionary are a value or a typed error. The ID is
 * that of the dictionary, which no search would find.
 */
class Lz4DictionaryFuzzTest {
  private static final int LIMIT = 1 << 16;
  private static final Dictionary DICTIONARY = Dictionary.of(Vectors.dictionary("profiles"));
  private static final Codec READER =
      new Codec(
          CompressionConfiguration.builder()
              .dictionary(DICTIONARY)
              .maxDecompressedSize(LIMIT)
              .build());
  private static final byte[] START = {0, 1, 2, 0, (byte) 0x82};

  @FuzzTest(maxDuration = "10s")
  void anyBlockIsAValueOrATypedError(byte[] data) {
    ByteBuffer envelope = ByteBuffer.allocate(START.length + Integer.BYTES + data.length);
    envelope.order(ByteOrder.LITTLE_ENDIAN).put(START).putInt(DICTIONARY.id()).put(data);
    byte[] value;
    try {
      value = READER.decode(envelope.array());
    } catch (UndecodableException error) {
      return;
    }
    if (value.length > LIMIT) {
      throw new AssertionError("a value of " + value.length + " bytes");
    }
  }
}
