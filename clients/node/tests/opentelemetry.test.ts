/** Metrics of OpenTelemetry. */

import assert from "node:assert/strict";
import { it } from "node:test";

import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";

import { Codec } from "../src";
import { instrument } from "../src/opentelemetry";

it("counters of the process are metrics with a unit, and the codec as an attribute", async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const provider = new MeterProvider({ readers: [reader] });
  instrument(provider);
  new Codec({ backend: "lz4" }).encode("again and again ".repeat(50));
  await provider.forceFlush();
  const metrics = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
  const byName = new Map(metrics.map((metric) => [metric.descriptor.name, metric]));
  const values = byName.get("snugly.encoded_values")?.dataPoints ?? [];
  assert.equal(values.find(({ attributes }) => attributes.codec === "lz4")?.value, 1);
  assert.equal(byName.get("snugly.encoded_bytes_in")?.descriptor.unit, "By");
  assert.equal(byName.get("snugly.encode_nanoseconds")?.descriptor.unit, "ns");
  assert.equal(byName.get("snugly.encode_failures")?.descriptor.unit, "{value}");
  assert.notEqual(byName.get("snugly.dictionaries_fetched"), undefined);
  await provider.shutdown();
});
