/**
 * OpenTelemetry metrics: what codecs have counted, for whichever meter provider the application has set up.
 *
 *     import { instrument } from "snugly/opentelemetry";
 *
 *     instrument();
 *
 * It needs the package `@opentelemetry/api`, and nothing else of snugly does.
 */

import { metrics, type Attributes, type MeterProvider } from "@opentelemetry/api";

import { loaded } from "./native";

/** Units by a part of the counter's name; the others count values. */
const UNITS: readonly (readonly [part: string, unit: string])[] = [
  ["_bytes_", "By"],
  ["_nanoseconds", "ns"],
];

/**
 * Registers the counters of the process, read whenever metrics are collected: to be called once for a provider.
 *
 * Each is an observable counter called as `statistics()` calls it, with "snugly." in front, but the codec in the name is
 * an attribute, `codec`: `snugly.encoded_values` with `codec` "zstd". Units are By, ns and {value}.
 *
 * @param provider Default: the global one of this moment.
 */
export function instrument(provider: MeterProvider = metrics.getMeterProvider()): void {
  if (!("addon" in loaded)) {
    return;
  }
  const { addon } = loaded;
  const meter = provider.getMeter("snugly");
  const families = new Map<string, { help: string; rows: { name: string; attributes: Attributes }[] }>();
  for (const { name, family, codec, help } of addon.counters()) {
    const { rows } = families.get(family) ?? { rows: [] };
    families.set(family, { help, rows: [...rows, { name, attributes: codec === undefined ? {} : { codec } }] });
  }
  for (const [family, { help, rows }] of families) {
    const unit = UNITS.find(([part]) => family.includes(part))?.[1] ?? "{value}";
    meter.createObservableCounter(`snugly.${family}`, { description: help, unit }).addCallback((result) => {
      const counted = addon.processStatistics();
      for (const { name, attributes } of rows) {
        result.observe(counted[name] ?? 0, attributes);
      }
    });
  }
}
