/** Properties of values and envelopes, whatever they are. */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";

import fc from "fast-check";

import { Codec, Dictionary, UndecodableError, type CompressionOptions } from "../src";
import { replaced, type Shape } from "../src/shapes";

fc.configureGlobal({ seed: 1, numRuns: 200 });

/** Bytes that repeat, which are what is compressed, and others. */
const bytes = fc
  .tuple(fc.uint8Array({ maxLength: 300 }), fc.integer({ min: 1, max: 40 }))
  .map(([part, times]) => Buffer.concat(Array.from({ length: times }, () => Buffer.from(part))));

const VALUE: Shape = { kind: "value" };
const SHAPES: readonly Shape[] = [
  VALUE,
  { kind: "transaction" },
  { kind: "each", inner: VALUE, hasArgumentsKeys: true },
  { kind: "pairs", inner: VALUE, hasKey: true },
  { kind: "element", inner: { kind: "each", inner: VALUE, hasArgumentsKeys: false }, at: 1, hasKey: true },
  { kind: "each", inner: { kind: "element", inner: { kind: "pairs", inner: VALUE, hasKey: false }, at: 1, hasKey: false }, hasArgumentsKeys: false },
];

const reply = fc.letrec((tie) => ({
  part: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom(null, 7, "text", true),
    fc.uint8Array({ maxLength: 5 }).map((each) => Buffer.from(each)),
    fc.array(tie("part"), { maxLength: 4 }),
    fc.dictionary(fc.string({ maxLength: 3 }).filter((name) => name !== "__proto__"), tie("part"), { maxKeys: 3 }),
  ),
})).part;

describe("any value", () => {
  let dictionary: Dictionary;
  const settings: Record<string, () => CompressionOptions> = {
    zstd: () => ({}),
    "zstd, small, with a checksum": () => ({ minCompressionSize: 6, checksum: true, compressionLevel: -5 }),
    "zstd with a dictionary": () => ({ dictionary }),
    lz4: () => ({ backend: "lz4" }),
    "lz4, level 9, wrapped": () => ({ backend: "lz4", compressionLevel: 9, existingEnvelopes: "wrap" }),
    "lz4 with a dictionary": () => ({ backend: "lz4", dictionary }),
    none: () => ({ backend: "none" }),
  };

  before(async () => {
    const samples = Array.from({ length: 500 }, (_, at) => Buffer.from(JSON.stringify({ id: at, name: `user ${at}` })));
    dictionary = await Dictionary.train(samples);
  });

  for (const [name, options] of Object.entries(settings)) {
    it(`comes back as it was from ${name}, here and from the worker pool`, async () => {
      const codec = new Codec(options());
      await fc.assert(
        fc.asyncProperty(bytes, async (value) => {
          const stored = codec.encode(value);
          assert.ok(stored.length <= value.length);
          assert.deepEqual(codec.decode(stored), value);
          const [fromWorker, here] = [await codec.encodeOnWorker(value), await codec.decodeOnWorker(stored)];
          assert.deepEqual(codec.decode(fromWorker), value);
          assert.deepEqual(here, value);
        }),
        { numRuns: 100 },
      );
    });

    it(`that is damaged after ${name} is an error or bytes, and nothing else`, () => {
      const codec = new Codec({ ...options(), maxDecompressedSize: 1 << 20 });
      const damage = fc.record({ at: fc.nat(400), byte: fc.nat(255), cut: fc.nat(400) });
      fc.assert(
        fc.property(bytes, damage, (value, { at, byte, cut }) => {
          const stored = Buffer.from(codec.encode(value));
          stored[at % Math.max(stored.length, 1)] = byte;
          outcome(codec, stored.subarray(0, Math.max(stored.length - cut, 0)));
          outcome(codec, stored);
        }),
      );
    });
  }

  it("that begins as an envelope is an error or bytes, and nothing else", () => {
    const codec = new Codec({ maxDecompressedSize: 1 << 20, dictionary });
    const backend = fc.constantFrom(1, 2, 3, 0x81, 0x82, 0x83, 0xff);
    fc.assert(
      fc.property(backend, fc.uint8Array({ maxLength: 100 }), (number, payload) => {
        outcome(codec, Buffer.concat([Buffer.of(0, 1, 2, 0, number), payload]));
      }),
    );
  });
});

describe("any reply", () => {
  it("keeps everything that is no value", () => {
    fc.assert(
      fc.property(fc.constantFrom(...SHAPES), reply, (shape, part) => {
        const before = JSON.stringify(part);
        let seen = 0;
        const same = replaced(shape, part, (value) => {
          seen += 1;
          return value;
        });
        assert.equal(JSON.stringify(same), before);
        const others = JSON.stringify(replaced(shape, part, () => "a value that was restored"));
        assert.equal(others.split('"a value that was restored"').length - 1, seen);
      }),
    );
  });
});

function outcome(codec: Codec, stored: Buffer): void {
  try {
    assert.ok(Buffer.isBuffer(codec.decode(stored)));
  } catch (error) {
    assert.ok(error instanceof UndecodableError, String(error));
  }
}
