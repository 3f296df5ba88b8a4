package dev.snugly.benchmark.client;

import glide.api.BaseClient;
import glide.api.GlideClient;
import glide.api.GlideClusterClient;
import glide.api.models.configuration.BaseClientConfiguration.BaseClientConfigurationBuilder;
import glide.api.models.configuration.CompressionConfiguration;
import glide.api.models.configuration.GlideClientConfiguration;
import glide.api.models.configuration.GlideClusterClientConfiguration;
import glide.api.models.configuration.NodeAddress;
import java.util.concurrent.ExecutionException;

/** Valkey GLIDE. */
record Glide(BaseClient client) implements Client {
  /** GLIDE's own limit is 1000, and it refuses what is over it. */
  private static final int LEAST_IN_FLIGHT = 1000;

  static Client plain(Endpoint endpoint) throws Exception {
    return open(endpoint, null);
  }

  static Client compressed(Endpoint endpoint) throws Exception {
    return open(endpoint, CompressionConfiguration.builder().enabled(true).build());
  }

  private static Client open(Endpoint endpoint, CompressionConfiguration compression)
      throws Exception {
    if (endpoint.cluster()) {
      var builder = GlideClusterClientConfiguration.builder();
      configure(builder, endpoint, compression);
      return new Glide(GlideClusterClient.createClient(builder.build()).get());
    }
    var builder = GlideClientConfiguration.builder();
    configure(builder, endpoint, compression);
    return new Glide(GlideClient.createClient(builder.build()).get());
  }

  private static void configure(
      BaseClientConfigurationBuilder<?, ?> builder,
      Endpoint endpoint,
      CompressionConfiguration compression) {
    builder
        .address(NodeAddress.builder().host(endpoint.host()).port(endpoint.port()).build())
        .useTLS(endpoint.tls())
        .requestTimeout((int) Endpoint.PATIENCE.toMillis())
        .inflightRequestsLimit(Math.max(LEAST_IN_FLIGHT, endpoint.tasks()))
        .compressionConfiguration(compression);
  }

  @Override
  public void set(String key, String value) throws Exception {
    client.set(key, value).get();
  }

  @Override
  public String get(String key) throws Exception {
    return client.get(key).get();
  }

  @Override
  public void close() {
    try {
      client.close();
    } catch (ExecutionException error) {
      throw new IllegalStateException("GLIDE cannot close its connection", error);
    }
  }
}
