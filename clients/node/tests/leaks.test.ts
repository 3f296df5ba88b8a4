/** Memory of the package: a million round trips leave none behind. Slow. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import IORedis from "ioredis";

import { Codec, compress } from "../src";
import { slow, valkey } from "./servers";

/** Most bytes that the process may have more after the round trips than before. */
const MOST = 64 << 20;
const ROUNDS = 1_000_000;

describe("memory", { skip: !slow }, () => {
  let cache: IORedis;

  before(async () => {
    const { port } = await valkey();
    cache = compress(new IORedis(port), { backend: "lz4", workerPoolFrom: 4000 });
  });

  after(() => {
    cache.disconnect();
  });

  it("is the same after a million values were encoded and decoded", () => {
    const codec = new Codec();
    const values = Array.from({ length: 100 }, (_, at) => Buffer.from(`value ${at} `.repeat(5 + at)));
    flat(() => {
      for (let round = 0; round < ROUNDS / 10; round++) {
        const value = values[round % values.length] ?? Buffer.of();
        assert.equal(codec.decode(codec.encode(value))?.length, value.length);
      }
    });
  });

  it("is the same after values were written and read by a client, some of them on the worker pool", async () => {
    const values = Array.from({ length: 100 }, (_, at) => `value ${at} `.repeat(5 + 6 * at));
    const round = async (): Promise<void> => {
      for (let turn = 0; turn < 200; turn++) {
        await Promise.all(values.map((value, at) => cache.set(`key:${at}`, value)));
        assert.deepEqual(await Promise.all(values.map((_, at) => cache.get(`key:${at}`))), values);
      }
    };
    await round();
    const before = resident();
    for (let turn = 0; turn < 5; turn++) {
      await round();
    }
    assert.ok(resident() - before < MOST, `${resident() - before} bytes more`);
  });
});

/** Does work once to warm up and nine times more, and asserts that it leaves nothing behind. */
function flat(work: () => void): void {
  work();
  const before = resident();
  for (let turn = 1; turn < 10; turn++) {
    work();
  }
  assert.ok(resident() - before < MOST, `${resident() - before} bytes more`);
}

function resident(): number {
  globalThis.gc?.();
  return process.memoryUsage.rss();
}
