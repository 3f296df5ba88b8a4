package dev.snugly.benchmark.measure;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.snugly.benchmark.client.Backend;
import dev.snugly.benchmark.client.ClientKind;
import dev.snugly.benchmark.client.Endpoint;
import dev.snugly.benchmark.link.Rate;
import java.util.HashSet;
import java.util.List;
import org.junit.jupiter.api.Test;

class PlanTest {
  private static final List<ClientKind> CLIENTS = List.of(ClientKind.values());
  private static final Plan PLAN =
      new Plan(
          CLIENTS,
          "json",
          List.of(100),
          List.of(1, 10),
          List.of(1, 2),
          List.of(Rate.DIRECT, Rate.parse("1gbit")),
          Backend.ZSTD,
          new Endpoint("localhost", 6379, false, null, false, 1),
          Extent.MINIMAL);

  @Test
  void eachRoundBeginsWithAnotherClientAndHasAll() {
    for (int round = 0; round < 2 * CLIENTS.size(); round++) {
      List<ClientKind> turn = PLAN.turn(round);
      assertEquals(CLIENTS.get(round % CLIENTS.size()), turn.get(0));
      assertEquals(new HashSet<>(CLIENTS), new HashSet<>(turn));
      assertEquals(CLIENTS.size(), turn.size());
    }
  }

  @Test
  void allCombinationsAreWorkloads() {
    List<Workload> workloads = PLAN.workloads("json", 100);
    assertEquals(8, new HashSet<>(workloads).size());
    assertEquals(8, workloads.size());
    assertEquals(
        "data=json size=100 tasks=1 clients=1 link=direct backend=zstd",
        workloads.get(0).toString());
  }
}
