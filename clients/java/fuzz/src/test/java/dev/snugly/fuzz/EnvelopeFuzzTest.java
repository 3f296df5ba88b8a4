package dev.snugly.fuzz;

import com.code_intelligence.jazzer.junit.FuzzTest;
import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Envelope;
import dev.snugly.core.UndecodableException;

/** Foreign bytes are a value or a typed error, and never take more memory than is allowed. */
class EnvelopeFuzzTest {
  private static final int LIMIT = 1 << 16;
  private static final Codec READER =
      new Codec(CompressionConfiguration.builder().maxDecompressedSize(LIMIT).build());
  private static final byte[] BACKENDS = {0x01, 0x02, (byte) 0x81, 0x03};

  @FuzzTest(maxDuration = "10s")
  void anyEnvelopeIsAValueOrATypedError(byte[] data) {
    if (data.length == 0) {
      return;
    }
    byte[] envelope = new byte[Envelope.HEADER_BYTES + data.length - 1];
    System.arraycopy(data, 1, envelope, Envelope.HEADER_BYTES, data.length - 1);
    envelope[1] = 1;
    envelope[2] = 2;
    envelope[Envelope.HEADER_BYTES - 1] = BACKENDS[data[0] & 3];
    byte[] value;
    try {
      value = READER.decode(envelope);
    } catch (UndecodableException error) {
      return;
    }
    if (value.length > LIMIT) {
      throw new AssertionError("a value of " + value.length + " bytes");
    }
  }
}
