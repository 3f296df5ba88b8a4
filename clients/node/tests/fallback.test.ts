/** Reading without the addon, against the vectors of the specification and against the addon. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import fc from "fast-check";

import { Codec, inspect } from "../src";
import { Fallback } from "../src/fallback";
import { decompressBlock, Lz4Error } from "../src/lz4";
import type { Failure } from "../src/native";
import { expanded, vectors, type ReaderVectors } from "./vectors";

fc.configureGlobal({ seed: 1 });

const USUAL_MOST = 512 << 20;
const LZ4 = 0x02;

describe("a reader without the addon", () => {
  for (const file of ["envelopes.json", "lz4_dictionary.json"]) {
    const { cases } = vectors(file) as ReaderVectors;
    it(`says of the envelopes in ${file} what the vectors do, or that the addon is missing`, () => {
      for (const { name, expect, error, options, ...bytes } of cases) {
        const stored = expanded(bytes.envelope);
        const reader = new Fallback("it is not there", options?.max_decompressed_size ?? USUAL_MOST);
        const read = reader.decode(stored, false, Infinity);
        const backend = inspect(stored)?.backend;
        if (expect === "untouched") {
          assert.equal(read, undefined, name);
        } else if (backend === LZ4 && expect === "value") {
          assert.deepEqual(read, bytes.value && expanded(bytes.value), name);
        } else {
          const isKnown = backend === LZ4 || error === "unknown_backend";
          assert.equal((read as Failure).kind, isKnown ? error : "addon_missing", name);
          assert.equal((read as Failure).backend, backend);
        }
      }
    });
  }

  it("tells the header of an envelope as the addon does", () => {
    const fallback = new Fallback("it is not there");
    const expectSame = (stored: Buffer): void => {
      const header = fallback.inspect(stored);
      const wanted = inspect(stored);
      assert.deepEqual([header?.backend, header?.name], [wanted?.backend, wanted?.name], stored.toString("hex"));
      if (wanted?.backend === LZ4) {
        assert.equal(header?.size, wanted.size, stored.subarray(0, 20).toString("hex"));
      }
    };
    for (const { envelope } of (vectors("envelopes.json") as ReaderVectors).cases) {
      expectSame(expanded(envelope));
    }
    for (let backend = 0; backend < 256; backend++) {
      for (const payload of [[], [1], [4, 0, 0, 0], [4, 0, 0, 0, 0x40]]) {
        expectSame(Buffer.from([0, 1, 2, 0, backend, ...payload]));
      }
    }
    fc.assert(fc.property(fc.array(fc.constantFrom(0, 1, 2, 0x81, 255), { maxLength: 12 }), (bytes) => {
      expectSame(Buffer.from(bytes));
    }));
  });

  it("restores values as text or as Buffers, and counts them", async () => {
    const reader = new Fallback("it is not there");
    const stored = new Codec({ backend: "lz4" }).encode("é".repeat(100));
    assert.equal(reader.decode(stored, true, Infinity), "é".repeat(100));
    assert.deepEqual(await reader.decodeOnWorker(stored, Infinity), Buffer.from("é".repeat(100)));
    assert.equal((reader.decode(stored, true, 199) as Failure).kind, "too_large");
    assert.deepEqual(reader.statistics(), { decoded_values_lz4: 2, decode_failures: 1 });
  });
});

describe("the decoder of LZ4 in JavaScript", () => {
  const codec = new Codec({ backend: "lz4", existingEnvelopes: "wrap" });
  /** Bytes that repeat, near and far. */
  const values = fc.array(fc.tuple(fc.uint8Array({ maxLength: 40 }), fc.integer({ min: 1, max: 60 })), { maxLength: 8 })
    .map((parts) => Buffer.concat(parts.flatMap(([part, times]) => Array.from({ length: times }, () => part))));

  /** Expects one value where both read one: each follows rules for ends that the other does not. */
  function expectSame(stored: Buffer): void {
    let value: Buffer;
    try {
      value = decompressBlock(stored.subarray(5), USUAL_MOST);
    } catch (error) {
      assert.ok(error instanceof Lz4Error, String(error));
      return;
    }
    let wanted: Buffer | null;
    try {
      wanted = codec.decode(stored);
    } catch {
      return;
    }
    assert.deepEqual(value, wanted, stored.toString("hex"));
  }

  it("decodes what the addon encodes", () => {
    fc.assert(fc.property(values, fc.integer({ min: -128, max: 12 }), (value, compressionLevel) => {
      const stored = new Codec({ backend: "lz4", compressionLevel }).encode(value);
      if (inspect(stored)?.backend === LZ4) {
        assert.deepEqual(decompressBlock(stored.subarray(5), USUAL_MOST), value);
      }
    }));
  });

  it("makes of damaged blocks what the addon makes of them, or an error", () => {
    const damage = fc.tuple(fc.nat(), fc.constantFrom(0, 1, 15, 16, 128, 240, 255));
    const damages = fc.array(damage, { minLength: 1, maxLength: 3 });
    fc.assert(fc.property(values, damages, fc.nat({ max: 3 }), (value, changes, cut) => {
      const stored = codec.encode(value);
      if (inspect(stored)?.backend === LZ4) {
        const damaged = Buffer.from(stored.subarray(0, stored.length - cut));
        for (const [at, byte] of changes) {
          damaged[5 + (at % (damaged.length - 5))] = byte;
        }
        expectSame(damaged);
      }
    }), { numRuns: 1000 });
  });

  it("makes of short blocks of any bytes what the addon makes of them, or an error", () => {
    const telling = fc.constantFrom(0, 1, 4, 15, 16, 17, 31, 240, 255);
    const blocks = fc.array(fc.oneof(telling, fc.nat(255)), { maxLength: 24 });
    fc.assert(fc.property(fc.nat({ max: 64 }), blocks, (length, block) => {
      expectSame(Buffer.from([0, 1, 2, 0, LZ4, length, 0, 0, 0, ...block]));
    }), { numRuns: 3000 });
  });
});
