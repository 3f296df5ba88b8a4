/** Delay of the event loop while values of 16 MiB are written and read beside small ones. */

import { monitorEventLoopDelay } from "node:perf_hooks";

import IORedis from "ioredis";

import { compress } from "../src";
import { KINDS } from "./values";

const LARGE_BYTES = 16 << 20;
/** Times that the large value is written and read. */
const TURNS = 10;
/** Resolution of the histogram, in milliseconds; it counts as delay, too. */
const RESOLUTION = 1;

/** Returns lines with the percentiles of the delay, bare and with zstd and lz4. */
export async function delays(port: number): Promise<string> {
  let report = "\n| compression | p50 | p99 | longest delay of the event loop, ms |\n|---|---|---|---|\n";
  for (const backend of ["none", "lz4", "zstd"] as const) {
    const client = new IORedis(port);
    if (backend !== "none") {
      compress(client, { backend });
    }
    const [p50, p99, max] = await delay(client);
    report += `| ${backend} | ${p50} | ${p99} | ${max} |\n`;
    client.disconnect();
  }
  return report;
}

async function delay(client: IORedis): Promise<string[]> {
  const record = KINDS[2]?.make(1) ?? Buffer.of();
  const large = Buffer.concat(Array.from({ length: Math.ceil(LARGE_BYTES / record.length) }, (_, at) =>
    KINDS[2]?.make(at) ?? Buffer.of(),
  )).subarray(0, LARGE_BYTES);
  const turn = async (number: number): Promise<void> => {
    await client.set(`large:${number % 2}`, large);
    await client.getBuffer(`large:${number % 2}`);
  };
  await turn(0);
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION });
  let isDone = false;
  const small = async (): Promise<void> => {
    while (!isDone) {
      await client.set("small", record);
      await client.getBuffer("small");
    }
  };
  histogram.enable();
  const beside = Array.from({ length: 4 }, small);
  for (let number = 0; number < TURNS; number++) {
    await turn(number);
  }
  histogram.disable();
  isDone = true;
  await Promise.all(beside);
  return [histogram.percentile(50), histogram.percentile(99), histogram.max].map((nanoseconds) =>
    (nanoseconds / 1e6).toFixed(1),
  );
}
