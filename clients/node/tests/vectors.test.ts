/** The codec against the vectors of the specification. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";

import { Codec, Dictionary, inspect, UndecodableError, type CompressionOptions, type UndecodableKind } from "../src";
import { Configuration } from "../src/configuration";
import type { Failure } from "../src/native";
import { Values } from "../src/values";
import { expanded, specified, vectors, type Bytes, type ReaderVectors } from "./vectors";

const READERS = ["envelopes.json", "lz4_dictionary.json"].map((file) => vectors(file) as ReaderVectors);

/** Returns a codec that is given the dictionary that an envelope names, or another one of those at hand. */
function reader(all: ReaderVectors, stored: Buffer, names: readonly string[], options: CompressionOptions = {}): Codec {
  const wanted = inspect(stored)?.dictionary;
  const atHand = names.map((name) => all.dictionaries[name]);
  const given = atHand.find((each) => each?.id === wanted) ?? atHand[0];
  return new Codec({ ...options, ...(given && { dictionary: Dictionary.from(expanded(given.bytes)) }) });
}

function failsWith(kind: UndecodableKind | undefined) {
  return (error: unknown) => {
    assert.ok(error instanceof UndecodableError, String(error));
    assert.equal(error.kind, kind, error.message);
    return true;
  };
}

describe("a reader", () => {
  for (const all of READERS) {
    for (const { name, expect, error, options, dictionaries = [], ...bytes } of all.cases) {
      it(`reads: ${name}`, async () => {
        const stored = expanded(bytes.envelope);
        const before = Buffer.from(stored);
        const most = options?.max_decompressed_size;
        const settings = most === undefined ? {} : { maxDecompressedSize: most };
        const codec = reader(all, stored, dictionaries, settings);
        if (expect === "error") {
          assert.throws(() => codec.decode(stored), failsWith(error));
          await assert.rejects(codec.decodeOnWorker(stored), failsWith(error));
        } else {
          const wanted = bytes.value === undefined ? stored : expanded(bytes.value);
          assert.deepEqual(codec.decode(stored), wanted);
          assert.deepEqual(await codec.decodeOnWorker(stored), wanted);
        }
        assert.deepEqual(stored, before);
      });
    }
  }

  it("reads the examples of the specification", () => {
    const [all] = READERS;
    assert.ok(all !== undefined);
    const examples = [...readFileSync(specified("envelope.md"), "utf8").matchAll(/```example(?:-82)?\n([^]*?)```/g)];
    assert.ok(examples.length >= 10);
    for (const [, text = ""] of examples) {
      const lines = text.trim().split("\n").map((line) => line.split(/: (.*)/, 2) as [string, string]);
      const { envelope = "", value, error } = Object.fromEntries(lines) as Record<string, string | undefined>;
      const stored = Buffer.from(envelope.replaceAll(" ", ""), "hex");
      const codec = reader(all, stored, ["profiles", "orders"]);
      if (error !== undefined) {
        assert.throws(() => codec.decode(stored), failsWith(error as UndecodableKind));
      } else if (value === "(not an envelope)") {
        assert.deepEqual(codec.decode(stored), stored);
        assert.equal(inspect(stored), undefined);
      } else {
        assert.deepEqual(codec.decode(stored), expanded(JSON.parse(value ?? "") as Bytes));
      }
    }
  });

  it("says the same of a value as text, and where the reply has no bytes left", () => {
    const { codec } = new Values(new Configuration(), false);
    const stored = codec.encode("é".repeat(100));
    assert.ok(stored !== null);
    assert.equal(codec.decode(stored, true, 200, Infinity), "é".repeat(100));
    assert.equal((codec.decode(stored, true, 199, Infinity) as Failure).kind, "too_large");
    assert.equal(codec.decode(stored, true, 200, 200), null);
  });
});

interface WriterVectors {
  defaults: WriterOptions;
  cases: { name: string; value: Bytes; expect: "as_is" | "encoded"; options?: Partial<WriterOptions> }[];
}

interface WriterOptions {
  backend: "zstd" | "lz4";
  level?: number;
  min_compression_size: number;
  existing_envelopes: "keep" | "wrap";
}

describe("a writer", () => {
  const { defaults, cases } = vectors("writers.json") as WriterVectors;
  for (const { name, value: bytes, expect, options } of cases) {
    it(`writes: ${name}`, async () => {
      const chosen = { ...defaults, ...options };
      const settings: CompressionOptions = {
        backend: chosen.backend,
        ...(chosen.level !== undefined && { compressionLevel: chosen.level }),
        minCompressionSize: chosen.min_compression_size,
        existingEnvelopes: chosen.existing_envelopes,
      };
      const value = expanded(bytes);
      const before = Buffer.from(value);
      for (const stored of [new Codec(settings).encode(value), await new Codec(settings).encodeOnWorker(value)]) {
        if (expect === "as_is") {
          assert.deepEqual(stored, value);
        } else {
          assert.notDeepEqual(stored, value);
          assert.notEqual(inspect(stored)?.name, undefined);
          assert.deepEqual(new Codec().decode(stored), value);
        }
      }
      assert.deepEqual(value, before);
    });
  }

  it("writes text as it writes its bytes", () => {
    for (const { value: bytes } of cases) {
      const value = expanded(bytes);
      if (Buffer.from(value.toString()).equals(value)) {
        assert.deepEqual(new Codec().encode(value.toString()), new Codec().encode(value));
      }
    }
  });
});

describe("a dictionary", () => {
  it("has the ID that the vectors give it, and its bytes", () => {
    for (const all of READERS) {
      for (const { id, bytes } of Object.values(all.dictionaries)) {
        const dictionary = Dictionary.from(expanded(bytes));
        assert.equal(dictionary.id, id);
        assert.deepEqual(dictionary.bytes, expanded(bytes));
      }
    }
  });

  it("is refused as the vectors say", () => {
    const { refused } = vectors("catalogue.json") as { refused: { name: string; bytes: Bytes }[] };
    assert.ok(refused.length > 0);
    for (const { name, bytes } of refused) {
      assert.throws(() => Dictionary.from(expanded(bytes)), { name: "DictionaryError" }, name);
    }
  });
});
