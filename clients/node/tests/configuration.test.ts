/** Settings, warnings of what counts as absent, and the order of commands that wait. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { Codec, compress, ConfigurationError, type CompressionOptions } from "../src";
import { Configuration } from "../src/configuration";
import { MissLog } from "../src/missed";
import { OrderedSender } from "../src/ordered";

/** Settings that are refused, each with what the message says: the setting, and what is allowed. */
const REFUSED: [object, RegExp][] = [
  [{ backend: "gzip" }, /^backend is "gzip": choose "zstd", "lz4", "auto", "none"$/],
  [{ goal: "fun" }, /^goal is "fun": choose "memory", "balanced", "speed"$/],
  [{ compressionLevel: 23 }, /^compressionLevel is 23: for zstd .* from -131072 to 22$/],
  [{ backend: "lz4", compressionLevel: -129 }, /^compressionLevel is -129: for lz4 .* from -128 to 12$/],
  [{ backend: "auto", compressionLevel: 1 }, /^compressionLevel .* give a goal$/],
  [{ minCompressionSize: 5 }, /^minCompressionSize is 5: .* from 6 to /],
  [{ minCompressionSize: 64.5 }, /^minCompressionSize is 64.5: it is a whole number/],
  [{ maxDecompressedSize: 0 }, /^maxDecompressedSize is 0: .* from 1 to /],
  [{ maxReplyBytes: -1 }, /^maxReplyBytes is -1: .* from 0 to /],
  [{ existingEnvelopes: "drop" }, /^existingEnvelopes is "drop": choose "keep", "wrap"$/],
  [{ checksum: "yes" }, /^checksum is "yes": choose true, false$/],
  [{ onUndecodable: "ignore" }, /^onUndecodable is "ignore": choose "raise", "raw", "miss"$/],
  [{ valueTypes: [] }, /^valueTypes is empty: give some of strings, hashes, lists, streams$/],
  [{ valueTypes: "strings" }, /^valueTypes is "strings": give a list/],
  [{ valueTypes: ["sets"] }, /^valueTypes is "sets": choose "strings"/],
  [{ exclude: "lock:*" }, /^exclude is "lock:\*": give a list/],
  [{ exclude: [1] }, /^exclude has 1: a pattern of keys is a string or a Buffer$/],
  [{ workerPoolFrom: 0 }, /^workerPoolFrom is 0: /],
  [{ dictionary: 5 }, /^dictionary is 5: give "catalogue", "auto"/],
  [{ dictionaryRefresh: 0.05 }, /^dictionaryRefresh is 0.05: .* from 0.1 to 86400$/],
  [{ dictionaryPrefix: "" }, /^dictionaryPrefix is "": give some text$/],
  [{ dictionaryMemory: 1 }, /^dictionaryMemory is 1: /],
  [{ levl: 3 }, /^there is no setting levl: choose from backend, /],
];

describe("a setting", () => {
  for (const [options, message] of REFUSED) {
    it(`is refused: ${JSON.stringify(options)}`, () => {
      assert.throws(() => new Configuration(options), { name: "ConfigurationError", message });
    });
  }

  it("is refused if only clients have it", () => {
    for (const options of [{ dictionary: "auto" }, { backend: "auto" }, { exclude: ["a"] }] as CompressionOptions[]) {
      assert.throws(() => new Codec(options), ConfigurationError);
    }
    assert.throws(() => compress(new Map()), { name: "ConfigurationError", message: /Map cannot be compressed/ });
  });
});

describe("a warning of a value that counts as absent", () => {
  it("comes once a minute, and counts those that it stands for", () => {
    let now = 0;
    const warnings: string[] = [];
    const log = new MissLog((warning) => warnings.push(warning), () => now);
    for (now of [0, 1, 59_999, 60_000, 120_000]) {
      log.tell(new Error(`at ${now}`));
    }
    assert.deepEqual(warnings, [
      "a value counts as absent: at 0",
      "a value counts as absent: at 60000 (2 more since the last of these warnings)",
      "a value counts as absent: at 120000",
    ]);
  });
});

describe("a sender", () => {
  it("keeps the order, and sends at once what waits for the same", async () => {
    const sent: string[] = [];
    const sender = new OrderedSender();
    let fulfil: () => void = () => undefined;
    const ready = new Promise<void>((resolve) => {
      fulfil = resolve;
    });
    const pass = (name: string, on?: Promise<void>): void => {
      sender.pass(on, () => sent.push(name));
    };
    pass("a");
    pass("b", ready);
    pass("c", ready);
    pass("d");
    assert.deepEqual(sent, ["a"]);
    fulfil();
    await ready;
    await Promise.resolve();
    assert.deepEqual(sent, ["a", "b", "c", "d"]);
    await Promise.resolve();
    pass("e");
    assert.deepEqual(sent.slice(4), ["e"]);
  });
});
