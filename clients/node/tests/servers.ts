/** Real servers for the tests: valkey-server, alone or as a cluster, and snugly. */

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

const VALKEY = process.env.SNUGLY_VALKEY_SERVER ?? "valkey-server";
const SNUGLY = process.env.SNUGLY_BIN ?? "snugly";
/** Whether tests run that take long: those that the gate leaves out. */
export const slow = process.env.SNUGLY_SLOW !== undefined;
/** Variables of servers: snugly takes those with its name for settings. */
const ENVIRONMENT = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("SNUGLY_")));
/** Time that anything may take before a test fails, in milliseconds. */
const PATIENCE = 60_000;

/** Time that a server may take for an answer, in milliseconds. */
const SILENCE = 10_000;
/** Ports that servers listen on: the lowest, and their number. */
const LOWEST_PORT = 15_000;
const PORTS = 17_000;
/** Ports that are tried for a server. */
const ATTEMPTS = 5;

const running: { child: ChildProcess; folder: string }[] = [];

after(async () => {
  for (const { child, folder } of running) {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    rmSync(folder, { recursive: true, force: true });
  }
});

/** A server that runs until the tests of its file have ended. */
export interface Server {
  readonly port: number;
  readonly process: ChildProcess;
}

/** Starts a valkey-server. */
export function valkey(...options: string[]): Promise<Server> {
  return started((port, folder) => [
    VALKEY,
    ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder, ...options],
  ]);
}

/** Starts the server of this project. */
export function snugly(...options: string[]): Promise<Server> {
  return started((port) => [SNUGLY, ["serve", "--port", String(port), "--bind", "127.0.0.1", ...options]]);
}

/** Starts a Valkey Cluster of three primaries, and returns them once they agree. */
export async function cluster(...options: string[]): Promise<Server[]> {
  const settings = ["--cluster-enabled", "yes", "--cluster-node-timeout", "5000", ...options];
  const nodes = await Promise.all([0, 1, 2].map(async () => {
    const bus = await freePort();
    return { server: await valkey(...settings, "--cluster-port", String(bus)), bus };
  }));
  const bounds = [0, 5461, 10923, 16384];
  for (const [number, { server }] of nodes.entries()) {
    await command(server.port, "CLUSTER", "SET-CONFIG-EPOCH", String(number + 1));
    const last = String((bounds[number + 1] ?? 0) - 1);
    await command(server.port, "CLUSTER", "ADDSLOTSRANGE", String(bounds[number]), last);
    for (const { server: other, bus } of nodes) {
      await command(server.port, "CLUSTER", "MEET", "127.0.0.1", String(other.port), String(bus));
    }
  }
  await until(async () => {
    const states = await Promise.all(nodes.map(({ server }) => command(server.port, "CLUSTER", "INFO")));
    return states.every((state) => /cluster_state:ok[^]*cluster_known_nodes:3/.test(state));
  });
  return nodes.map(({ server }) => server);
}

/** Waits until a condition holds. */
export async function until(holds: () => Promise<boolean> | boolean, what = "a condition"): Promise<void> {
  const end = Date.now() + PATIENCE;
  while (!(await holds())) {
    if (Date.now() > end) {
      throw new Error(`${what} does not hold after ${PATIENCE / 1000} s`);
    }
    await sleep(20);
  }
}

/** Sends one command, and returns the reply as it comes over the wire. */
export async function command(port: number, ...args: string[]): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  // A listener there need not be the server that is meant, nor answer.
  socket.setTimeout(SILENCE, () => socket.destroy(new Error(`port ${port} does not answer`)));
  try {
    await once(socket, "connect");
    socket.write(`*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join("")}`);
    const [reply] = (await once(socket, "data")) as [Buffer];
    return reply.toString();
  } finally {
    socket.destroy();
  }
}

/**
 * Returns a port that nobody listens on. It is none of those that systems give to the ends of connections, which could take
 * it before a server does.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST_PORT + Math.floor(Math.random() * PORTS);
    // Somebody may still look for a server that was there before.
    const server = createServer((socket) => socket.destroy()).listen(port, "127.0.0.1");
    const isFree = await Promise.race([
      once(server, "listening").then(() => true),
      once(server, "error").then(() => false),
    ]).catch(() => false);
    if (isFree) {
      server.close();
      await once(server, "close");
      return port;
    }
  }
}

/** Starts a program on a free port, and on another one if somebody else has taken that meanwhile. */
async function started(program: (port: number, folder: string) => [string, string[]]): Promise<Server> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const folder = mkdtempSync(join(tmpdir(), "snugly-node-"));
    const [name, args] = program(port, folder);
    const child = spawn(name, args, { stdio: "ignore", env: ENVIRONMENT });
    running.push({ child, folder });
    const answers = (): Promise<boolean> =>
      command(port, "PING")
        .then((reply) => reply.startsWith("+PONG"))
        .catch(() => false);
    await until(async () => child.exitCode !== null || (await answers()), `${name} on port ${port}`);
    if (child.exitCode === null) {
      return { port, process: child };
    }
    if (attempt === ATTEMPTS) {
      throw new Error(`${name} has ended with ${child.exitCode}`);
    }
  }
}
