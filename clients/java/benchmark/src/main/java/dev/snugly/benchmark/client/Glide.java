package dev.snugly.benchmark.client;

import glide.api.BaseClient;
import glide.api.GlideClient;
import glide.api.GlideClusterClient;
import glide.api.models.configuration.AdvancedGlideClientConfiguration;
import glide.api.models.configuration.AdvancedGlideClusterClientConfiguration;
import glide.api.models.configuration.BaseClientConfiguration.BaseClientConfigurationBuilder;
import glide.api.models.configuration.CompressionConfiguration;
import glide.api.models.configuration.GlideClientConfiguration;
import glide.api.models.configuration.GlideClusterClientConfiguration;
import glide.api.models.configuration.NodeAddress;
import glide.api.models.configuration.TlsAdvancedConfiguration;
import java.io.IOException;
import java.nio.file.Files;
import java.util.concurrent.ExecutionException;

/** Valkey GLIDE. */
record Glide(BaseClient client) implements Client {
  /** GLIDE's own limit is 1000, and it refuses what is over it. */
  private static final int LEAST_IN_FLIGHT = 1000;

  /** It still counts a request for a moment when its task has the answer and asks again. */
  private static final int IN_FLIGHT_PER_TASK = 2;

  static Client open(Endpoint endpoint, Backend backend) throws Exception {
    if (endpoint.cluster()) {
      var builder =
          GlideClusterClientConfiguration.builder()
              .advancedConfiguration(
                  AdvancedGlideClusterClientConfiguration.builder()
                      .tlsAdvancedConfiguration(trust(endpoint))
                      .build());
      configure(builder, endpoint, backend);
      return new Glide(GlideClusterClient.createClient(builder.build()).get());
    }
    var builder =
        GlideClientConfiguration.builder()
            .advancedConfiguration(
                AdvancedGlideClientConfiguration.builder()
                    .tlsAdvancedConfiguration(trust(endpoint))
                    .build());
    configure(builder, endpoint, backend);
    return new Glide(GlideClient.createClient(builder.build()).get());
  }

  private static TlsAdvancedConfiguration trust(Endpoint endpoint) throws IOException {
    TlsAdvancedConfiguration.TlsAdvancedConfigurationBuilder<?, ?> builder =
        TlsAdvancedConfiguration.builder();
    return endpoint.tlsCa() == null
        ? builder.build()
        : builder.rootCertificates(Files.readAllBytes(endpoint.tlsCa())).build();
  }

  private static void configure(
      BaseClientConfigurationBuilder<?, ?> builder, Endpoint endpoint, Backend backend) {
    builder
        .address(NodeAddress.builder().host(endpoint.host()).port(endpoint.port()).build())
        .useTLS(endpoint.tls())
        .requestTimeout((int) Endpoint.PATIENCE.toMillis())
        .inflightRequestsLimit(Math.max(LEAST_IN_FLIGHT, IN_FLIGHT_PER_TASK * endpoint.tasks()))
        .compressionConfiguration(compression(backend));
  }

  private static CompressionConfiguration compression(Backend backend) {
    return backend == null
        ? null
        : CompressionConfiguration.builder().enabled(true).backend(backend.glide()).build();
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
