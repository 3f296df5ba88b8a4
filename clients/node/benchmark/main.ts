/**
 * Measures clients for Node.js with and without compression, in turn and in processes of their own, beside one server.
 *
 *     npm run bench -- --rounds 3 --seconds 1 --tasks 1,10,100 --only ioredis
 */

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

import { delays } from "./delay";
import type { Figure } from "./measure";
import { PEERS } from "./peers";

const { values: given } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "0.5" },
    tasks: { type: "string", default: "1,10,100" },
    only: { type: "string", default: "" },
    port: { type: "string", default: "17684" },
    help: { type: "boolean", default: false },
  },
});

const HELP = `Measures clients for Node.js with and without compression beside one server.

  --rounds N      runs of each, of which the medians count (3)
  --seconds S     seconds of each figure (0.5)
  --tasks N,...   requests at once (1,10,100)
  --only NAME     clients whose names begin so; "delay" for the delay of the event loop alone
  --port N        port of the server that is started (17684)
`;

async function main(): Promise<void> {
  if (given.help) {
    process.stdout.write(HELP);
    return;
  }
  const server = spawn(process.env.SNUGLY_VALKEY_SERVER ?? "valkey-server", ["--port", given.port, "--save", ""], {
    stdio: "ignore",
  });
  try {
    await sleep(500);
    if (given.only !== "delay") {
      report(measured());
    }
    process.stdout.write(await delays(Number(given.port)));
  } finally {
    server.kill();
    await once(server, "exit");
  }
}

/** Figures of all rounds, by client, backend, kind, tasks and command. */
function measured(): Map<string, Figure[]> {
  const figures = new Map<string, Figure[]>();
  const runs = PEERS.filter(({ name }) => name.startsWith(given.only)).flatMap(({ name, backends }) =>
    backends.map((backend) => ({ name, backend })),
  );
  for (let round = 1; round <= Number(given.rounds); round++) {
    for (const [at, { name, backend }] of runs.entries()) {
      process.stderr.write(`round ${round} of ${given.rounds}, ${at + 1} of ${runs.length}: ${name}, ${backend}\n`);
      const args = [join(__dirname, "measure.js"), name, backend, given.port, given.seconds, given.tasks];
      const lines = execFileSync(process.execPath, args, { encoding: "utf8" }).trim().split("\n");
      for (const line of lines) {
        const figure = JSON.parse(line) as Figure;
        const key = [figure.kind, figure.tasks, figure.command, name, backend].join(" | ");
        figures.set(key, [...(figures.get(key) ?? []), figure]);
      }
    }
  }
  return figures;
}

/** Prints medians, and what they are of the same client without compression and of GLIDE with the same codec. */
function report(figures: ReadonlyMap<string, Figure[]>): void {
  const rates = new Map<string, number>();
  for (const [key, all] of figures) {
    rates.set(key, median(all.map(({ rate }) => rate)));
  }
  process.stdout.write(
    "| values | tasks | command | client | compression | requests a second | of the bare client | of GLIDE with the codec | µs of processor time |\n",
  );
  process.stdout.write("|---|---|---|---|---|---|---|---|---|\n");
  for (const [key, rate] of rates) {
    const [kind = "", tasks = "", command = "", name = "", backend = ""] = key.split(" | ");
    const load = [kind, tasks, command];
    const bare = rates.get([...load, name, "none"].join(" | "));
    const glide = rates.get([...load, "GLIDE", backend.split("+")[0]].join(" | "));
    const ratio = (peer: number | undefined): string => (peer === undefined ? "" : (rate / peer).toFixed(2));
    const processor = median((figures.get(key) ?? []).map((figure) => figure.processor)).toFixed(1);
    const row = [kind, tasks, command, name, backend, rate.toFixed(0), ratio(bare), ratio(glide), processor];
    process.stdout.write(`| ${row.join(" | ")} |\n`);
  }
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

void main();
