package dev.snugly.spring;

import dev.snugly.core.CompressionBackend;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.ConfigurationException;
import dev.snugly.core.ExistingEnvelopes;
import dev.snugly.core.OnUndecodable;
import dev.snugly.core.ValueType;
import java.util.List;
import java.util.Set;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.PropertyMapper;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.util.unit.DataSize;

/**
 * What is read from the properties of an application; what is left out has the default.
 *
 * @param enabled Whether values are compressed and restored at all.
 * @param caches Whether the values of caches of Spring Cache are compressed.
 * @param connections Whether all connections of Lettuce compress by commands, which includes those
 *     of caches.
 * @param backend What new values are compressed with: zstd, lz4 or none. Default zstd.
 * @param compressionLevel How hard to compress: lower is faster, higher smaller. Default 3 for
 *     zstd, 0 for lz4.
 * @param minCompressionSize The length below which values are sent as they are. Default 64 bytes.
 * @param maxDecompressedSize The length over which values are neither compressed nor decoded.
 *     Default 512 MB.
 * @param maxReplyBytes What the values of one reply may be restored to together, where connections
 *     compress; 0 for any. Default 1 GB.
 * @param existingEnvelopes What becomes of values that are envelopes already: wrap or keep. Default
 *     wrap, since nobody hands them to a cache on purpose.
 * @param checksum Whether zstd frames carry a checksum of the value. Default false.
 * @param onUndecodable What a reader gets for what cannot be read: miss, raise or raw. Default
 *     miss.
 * @param readGzip Whether values that are GZIP files are restored, too. Default false.
 * @param valueTypes Whose values connections compress. Default strings.
 * @param exclude Globs of keys, as those of KEYS, whose values connections send as they are.
 *     Default none.
 * @param catalogue Whether connections write with the dictionaries that lie beside the data.
 *     Default false.
 * @param dictionaryDatabase The database that dictionaries live in. Default the connections' own.
 */
@ConfigurationProperties("snugly")
public record SnuglyProperties(
    @DefaultValue("true") boolean enabled,
    @DefaultValue("true") boolean caches,
    @DefaultValue("false") boolean connections,
    CompressionBackend backend,
    Integer compressionLevel,
    DataSize minCompressionSize,
    DataSize maxDecompressedSize,
    DataSize maxReplyBytes,
    ExistingEnvelopes existingEnvelopes,
    Boolean checksum,
    OnUndecodable onUndecodable,
    Boolean readGzip,
    Set<ValueType> valueTypes,
    List<String> exclude,
    Boolean catalogue,
    Integer dictionaryDatabase) {
  /** The configuration that these say. */
  CompressionConfiguration configuration() {
    CompressionConfiguration.Builder builder =
        CompressionConfiguration.builder()
            .existingEnvelopes(ExistingEnvelopes.WRAP)
            .onUndecodable(OnUndecodable.MISS);
    PropertyMapper map = PropertyMapper.get();
    map.from(enabled).to(builder::enabled);
    map.from(backend).to(builder::backend);
    map.from(compressionLevel).to(builder::compressionLevel);
    map.from(minCompressionSize)
        .as(size -> bytes("min-compression-size", size))
        .to(builder::minCompressionSize);
    map.from(maxDecompressedSize)
        .as(size -> bytes("max-decompressed-size", size))
        .to(builder::maxDecompressedSize);
    map.from(maxReplyBytes).as(DataSize::toBytes).to(builder::maxReplyBytes);
    map.from(existingEnvelopes).to(builder::existingEnvelopes);
    map.from(checksum).to(builder::checksum);
    map.from(onUndecodable).to(builder::onUndecodable);
    map.from(readGzip).to(builder::readGzip);
    map.from(valueTypes).to(builder::valueTypes);
    map.from(exclude).to(builder::exclude);
    map.from(catalogue).to(builder::catalogue);
    map.from(dictionaryDatabase).to(builder::dictionaryDatabase);
    return builder.build();
  }

  private static int bytes(String property, DataSize size) {
    long bytes = size.toBytes();
    if (bytes != (int) bytes) {
      throw new ConfigurationException(
          "snugly.%s is %d bytes; it may be up to %d"
              .formatted(property, bytes, CompressionConfiguration.MOST_MAX_DECOMPRESSED_SIZE));
    }
    return (int) bytes;
  }
}
