/** The clients that are measured: a row each. */

import { GlideClient, CompressionBackend, Decoder } from "@valkey/valkey-glide";
import IORedis from "ioredis";
import IOValkey from "iovalkey";
import { createClient, RESP_TYPES } from "redis";

import { compress, Dictionary, type CompressionOptions } from "../src";

/** One client. Values are Buffers both ways. */
export interface Client {
  set(key: string, value: Buffer): Promise<unknown>;
  get(key: string): Promise<unknown>;
  close(): void | Promise<void>;
}

/** A library of clients. */
export interface Peer {
  readonly name: string;
  /** Names of how values are compressed; `none` for not at all. */
  readonly backends: readonly string[];
  /** Opens a client. A dictionary is made of samples if the backend uses one. */
  open(port: number, backend: string, samples: readonly Buffer[]): Promise<Client>;
}

const OURS = ["none", "zstd", "lz4", "lz4+dictionary", "zstd+dictionary"];

export const PEERS: readonly Peer[] = [
  { name: "ioredis", backends: OURS, open: (port, backend, samples) => ioredis(new IORedis(port), backend, samples) },
  {
    name: "ioredis, automatic pipelines",
    backends: OURS,
    open: (port, backend, samples) => ioredis(new IORedis(port, { enableAutoPipelining: true }), backend, samples),
  },
  { name: "iovalkey", backends: OURS, open: (port, backend, samples) => ioredis(new IOValkey(port), backend, samples) },
  { name: "node-redis", backends: OURS, open: nodeRedis },
  { name: "GLIDE", backends: ["none", "zstd", "lz4"], open: glide },
];

async function options(backend: string, samples: readonly Buffer[]): Promise<CompressionOptions> {
  const [name, withDictionary] = backend.split("+");
  return {
    backend: name as "zstd" | "lz4",
    ...(withDictionary !== undefined && { dictionary: await Dictionary.train(samples), dictionaryRefresh: 0.1 }),
  };
}

async function ioredis(client: IORedis | IOValkey, backend: string, samples: readonly Buffer[]): Promise<Client> {
  if (backend !== "none") {
    compress<object>(client, await options(backend, samples));
  }
  return {
    set: (key, value) => client.set(key, value),
    get: (key) => client.getBuffer(key),
    close: () => {
      client.disconnect();
    },
  };
}

async function nodeRedis(port: number, backend: string, samples: readonly Buffer[]): Promise<Client> {
  const client = createClient({ socket: { port } });
  if (backend !== "none") {
    compress(client, await options(backend, samples));
  }
  await client.connect();
  const buffers = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  return {
    set: (key, value) => client.set(key, value),
    get: (key) => buffers.get(key),
    close: () => {
      client.destroy();
    },
  };
}

async function glide(port: number, backend: string): Promise<Client> {
  const compression = {
    enabled: true,
    backend: backend === "lz4" ? CompressionBackend.LZ4 : CompressionBackend.ZSTD,
  };
  const client = await GlideClient.createClient({
    addresses: [{ host: "127.0.0.1", port }],
    requestTimeout: 60_000,
    ...(backend !== "none" && { compression }),
  });
  return {
    set: (key, value) => client.set(key, value),
    get: (key) => client.get(key, { decoder: Decoder.Bytes }),
    close: () => {
      client.close();
    },
  };
}
