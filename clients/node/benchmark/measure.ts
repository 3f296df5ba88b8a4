/** Measures one client in a process of its own, and prints a line of JSON for each load. */

import { KINDS, COUNT } from "./values";
import { PEERS, type Client } from "./peers";

/** Figures of one load. */
export interface Figure {
  readonly kind: string;
  readonly tasks: number;
  readonly command: "SET" | "GET";
  /** Requests a second. */
  readonly rate: number;
  /** Microseconds of this process's processor time a request. */
  readonly processor: number;
}

/** Requests that warm the client up, before each figure. */
const WARM_UP = 2000;

async function figure(
  client: Client,
  command: "SET" | "GET",
  values: readonly Buffer[],
  tasks: number,
  seconds: number,
): Promise<{ rate: number; processor: number }> {
  let next = 0;
  const one = (): Promise<unknown> => {
    const at = next++ % values.length;
    return command === "SET" ? client.set(`key:${at}`, values[at] ?? Buffer.of()) : client.get(`key:${at}`);
  };
  const load = async (goesOn: () => boolean): Promise<void> => {
    const task = async (): Promise<void> => {
      while (goesOn()) {
        await one();
      }
    };
    await Promise.all(Array.from({ length: tasks }, task));
  };
  await load(() => next < WARM_UP);
  const [first, began, used] = [next, performance.now(), process.cpuUsage()];
  const end = began + seconds * 1000;
  await load(() => performance.now() < end);
  const { user, system } = process.cpuUsage(used);
  const requests = next - first;
  return { rate: (requests * 1000) / (performance.now() - began), processor: (user + system) / requests };
}

async function main(name: string, backend: string, port: number, seconds: number, tasks: number[]): Promise<void> {
  const peer = PEERS.find((each) => each.name === name);
  if (peer === undefined) {
    throw new Error(`there is no client ${name}`);
  }
  for (const kind of KINDS) {
    const values = Array.from({ length: COUNT }, (_, number) => kind.make(number));
    // Others than those that are measured.
    const samples = Array.from({ length: 2 * COUNT }, (_, number) => kind.make(COUNT + number));
    const client = await peer.open(port, backend, samples);
    // A dictionary is used once it has been published.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    await Promise.all(values.map((value, at) => client.set(`key:${at}`, value)));
    const read = await client.get("key:7");
    if (!Buffer.isBuffer(read) || !read.equals(values[7] ?? Buffer.of())) {
      throw new Error(`${name} with ${backend} does not return what was written`);
    }
    for (const count of tasks) {
      for (const command of ["SET", "GET"] as const) {
        const figures = await figure(client, command, values, count, seconds);
        const line: Figure = { kind: kind.name, tasks: count, command, ...figures };
        process.stdout.write(`${JSON.stringify(line)}\n`);
      }
    }
    await client.close();
  }
}

const [name = "", backend = "", port, seconds, tasks = ""] = process.argv.slice(2);
void main(name, backend, Number(port), Number(seconds), tasks.split(",").map(Number));
