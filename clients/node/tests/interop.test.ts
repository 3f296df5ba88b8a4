/** Values of other languages' clients, and ours read by them: Valkey GLIDE and the Python package. Slow. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";

import { CompressionBackend, Decoder, GlideClient } from "@valkey/valkey-glide";
import IORedis from "ioredis";

import { compress, Dictionary, inspect, type CompressionOptions } from "../src";
import { slow, until, valkey } from "./servers";
import { SAMPLES, user } from "./users";

const SIZES = [1, 63, 64, 100, 1000, 10_000, 100_000, 1_000_000];

/** Returns values of several sizes, of text that repeats and of bytes that do not. */
function values(): Map<string, Buffer> {
  const all = new Map<string, Buffer>();
  for (const size of SIZES) {
    all.set(`text:${size}`, Buffer.from("héllo wörld, ".repeat(size / 10 + 1)).subarray(0, size));
    all.set(`bytes:${size}`, Buffer.from(Array.from({ length: size }, (_, at) => (at * at * 31 + at) >>> (at % 7))));
  }
  return all;
}

describe("values of other clients", { skip: !slow }, () => {
  const all = values();
  let port: number;
  const clients: IORedis[] = [];

  function open(options?: CompressionOptions): IORedis {
    const client = new IORedis(port);
    clients.push(client);
    return options === undefined ? client : compress(client, options);
  }

  before(async () => {
    ({ port } = await valkey());
  });

  after(() => {
    for (const client of clients) {
      client.disconnect();
    }
  });

  for (const backend of ["zstd", "lz4"] as const) {
    it(`are exchanged with Valkey GLIDE in ${backend}`, async () => {
      const glide = await GlideClient.createClient({
        addresses: [{ host: "127.0.0.1", port }],
        requestTimeout: 60_000,
        compression: {
          enabled: true,
          backend: backend === "zstd" ? CompressionBackend.ZSTD : CompressionBackend.LZ4,
        },
      });
      const cache = open({ backend });
      for (const [key, value] of all) {
        await glide.set(`glide:${key}`, value);
        assert.deepEqual(await cache.getBuffer(`glide:${key}`), value);
        await cache.set(`ours:${key}`, value);
        assert.deepEqual(await glide.get(`ours:${key}`, { decoder: Decoder.Bytes }), value);
      }
      assert.equal(inspect((await open().getBuffer("glide:text:1000")) ?? Buffer.of())?.name, backend);
      glide.close();
    });
  }

  for (const backend of ["zstd", "lz4", "zstd+dictionary", "lz4+dictionary"]) {
    it(`are exchanged with the Python package in ${backend}`, async () => {
      const folder = mkdtempSync(join(tmpdir(), "snugly-node-"));
      const [codec, hasDictionary] = backend.split("+");
      const dictionary = await Dictionary.train(SAMPLES);
      writeFileSync(join(folder, "dictionary"), dictionary.bytes);
      const cache = open({
        backend: codec as "zstd" | "lz4",
        dictionaryRefresh: 0.2,
        minCompressionSize: 32,
        ...(hasDictionary !== undefined && { dictionary }),
      });
      const looker = open();
      const sample = user(7777);
      await until(async () => {
        await cache.set("sample", sample);
        const header = inspect((await looker.getBuffer("sample")) ?? Buffer.of());
        return hasDictionary === undefined || header?.dictionary === dictionary.id;
      });
      await Promise.all(Array.from(all, ([key, value]) => cache.set(`ours:${key}`, value)));
      const given = hasDictionary === undefined ? "None" : JSON.stringify(join(folder, "dictionary"));
      python(`
import time, snugly
compression = snugly.CompressionConfiguration(
    backend="${codec}", dictionary=${given}, dictionary_refresh=0.2, min_compression_size=32)
cache = snugly.Valkey(port=${port}, compression=compression)
assert cache.get("sample") == ${JSON.stringify(sample)}.encode()
for key in ${JSON.stringify([...all.keys()])}:
    cache.set("python:" + key, cache.get("ours:" + key))
while ${given} and not snugly.statistics(cache)["encoded_values_${codec}_dictionary"]:
    cache.set("python:sample", ${JSON.stringify(sample)})
    time.sleep(0.05)
cache.set("python:sample", ${JSON.stringify(sample)})
cache.close()`);
      for (const [key, value] of all) {
        assert.deepEqual(await cache.getBuffer(`python:${key}`), value);
      }
      assert.equal(await open({}).get("python:sample"), sample);
      rmSync(folder, { recursive: true });
    });
  }
});

function python(program: string): void {
  execFileSync(process.env.SNUGLY_PYTHON ?? "python3", ["-c", program], { stdio: "inherit" });
}
