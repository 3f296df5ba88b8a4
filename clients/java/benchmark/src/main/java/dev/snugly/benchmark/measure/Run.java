package dev.snugly.benchmark.measure;

import dev.snugly.benchmark.client.Client;
import dev.snugly.benchmark.client.ClientKind;
import dev.snugly.benchmark.client.Endpoint;
import dev.snugly.benchmark.client.Housekeeping;
import dev.snugly.benchmark.data.Corpus;
import dev.snugly.benchmark.link.Relay;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** Does what is planned. */
public final class Run {
  private final Plan plan;
  private final Consumer<String> progress;
  private final Results results = new Results();

  /**
   * A run that has not begun.
   *
   * @param progress is told what is measured next
   */
  public Run(Plan plan, Consumer<String> progress) {
    this.plan = plan;
    this.progress = progress;
  }

  /**
   * Measures everything, and removes what it has written.
   *
   * @throws Exception what a client throws, or a {@link WrongValueException}
   */
  public Results run() throws Exception {
    for (int dataSize : plan.dataSizes()) {
      Corpus corpus = Corpus.of(plan.data(), dataSize);
      try (Housekeeping housekeeping = new Housekeeping(plan.endpoint())) {
        for (ClientKind client : plan.clients()) {
          fill(keyspace(client, corpus), dataSize, housekeeping);
        }
        for (Workload workload : plan.workloads(corpus.name(), dataSize)) {
          measure(workload, corpus);
        }
      }
    }
    return results;
  }

  private Keyspace keyspace(ClientKind client, Corpus corpus) {
    return new Keyspace(client, corpus, plan.extent().keys());
  }

  /** Writes all values, reads and compares them, and looks what the server has. */
  private void fill(Keyspace keys, int dataSize, Housekeeping housekeeping) throws Exception {
    progress.accept("filling: %s, %d B".formatted(keys.client(), dataSize));
    housekeeping.add(keys.keys());
    housekeeping.add(plan.backend().ownKeys());
    long stored = 0;
    try (Client client = keys.client().open(plan.endpoint(), plan.backend())) {
      for (int number = 0; number < keys.count(); number++) {
        client.set(keys.key(number), keys.value(number));
      }
      for (int number = 0; number < keys.count(); number++) {
        String found = client.get(keys.key(number));
        if (!keys.value(number).equals(found)) {
          throw new WrongValueException(keys.key(number), keys.value(number), found);
        }
        stored += housekeeping.storedBytes(keys.key(number));
      }
    }
    results.addStored(keys.client(), dataSize, (double) stored / keys.count());
  }

  private void measure(Workload workload, Corpus corpus) throws Exception {
    Endpoint endpoint = plan.endpoint().withTasks(workload.tasks());
    if (!workload.link().relayed()) {
      measure(workload, corpus, endpoint);
      return;
    }
    InetSocketAddress server = new InetSocketAddress(endpoint.host(), endpoint.port());
    try (Relay relay = new Relay(server, workload.link())) {
      measure(workload, corpus, endpoint.behind(relay.port()));
    }
  }

  private void measure(Workload workload, Corpus corpus, Endpoint endpoint) throws Exception {
    for (int round = 0; round < plan.extent().rounds(); round++) {
      for (ClientKind client : plan.turn(round)) {
        progress.accept("round %d: %s, %s".formatted(round + 1, workload, client));
        results.add(workload, client, sample(workload, keyspace(client, corpus), endpoint));
      }
    }
  }

  private Sample sample(Workload workload, Keyspace keys, Endpoint endpoint) throws Exception {
    List<Client> clients = new ArrayList<>();
    try {
      for (int count = 0; count < workload.clientCount(); count++) {
        clients.add(keys.client().open(endpoint, plan.backend()));
      }
      Extent extent = plan.extent();
      new Load(clients, keys, workload.tasks()).run(extent.warmUp(), Long.MAX_VALUE);
      return new Load(clients, keys, workload.tasks()).run(extent.most(), extent.operations());
    } finally {
      for (Client client : clients) {
        client.close();
      }
    }
  }
}
