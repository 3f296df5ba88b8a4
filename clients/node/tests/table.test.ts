/** The command table, its shapes, and what is left of it without the addon, against the specification's vectors. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { Compressor } from "../src/compressor";
import { Configuration } from "../src/configuration";
import { Fallback, FallbackTable } from "../src/fallback";
import { loaded, UNTOUCHED, type CommandTable } from "../src/native";
import { replaced, type Shape } from "../src/shapes";
import { expanded, vectors, type Bytes } from "./vectors";

type Argument = string | Bytes;
type Reply =
  | string
  | number
  | null
  | Reply[]
  | { simple: string }
  | { error: string }
  | { map: [Reply, Reply][] }
  | { set: Reply[] };

interface CommandVectors {
  commands: {
    arguments: Argument[];
    fits: boolean;
    keys?: number[];
    values?: [number, number][];
    compared?: number[];
    refused?: Record<string, string>;
  }[];
  positions: { arguments: Argument[]; keys: number[] | null }[];
  replies: { arguments: Argument[]; reply: Reply; values: [string, string | null][] }[];
}

const TYPES = ["strings", "hashes", "lists", "streams"] as const;
const { commands, positions, ...all } = vectors("commands.json") as CommandVectors;
/** Where a popped list's key is missing in a reply, which no server leaves out, keys are guessed in other ways. */
const replies = all.replies.filter(
  ({ arguments: [name], reply }) =>
    !/^B?[LR]M?POP$/.test(typeof name === "string" ? name : "") ||
    !Array.isArray(reply) ||
    ![null, 5].includes(reply[0] as null),
);

assert.ok("addon" in loaded);
const { addon } = loaded;

/** Splits a command into its name and its arguments, as text if they can be. */
function split(words: Argument[]): { name: string; args: (string | Buffer)[] } {
  const [name = "", ...args] = words.map((word) => (typeof word === "string" ? word : expanded(word)));
  return { name: name.toString(), args };
}

function asBuffers(args: (string | Buffer)[]): Buffer[] {
  return args.map((arg) => Buffer.from(arg));
}

/** Returns a reply as clients get it; maps are one of the three kinds in which libraries give them. */
function received(reply: Reply, map: (pairs: [unknown, unknown][]) => unknown): unknown {
  if (typeof reply === "string") {
    return Buffer.from(reply);
  }
  if (typeof reply !== "object" || reply === null) {
    return reply;
  }
  if (Array.isArray(reply)) {
    return reply.map((part) => received(part, map));
  }
  if ("simple" in reply) {
    return reply.simple;
  }
  if ("error" in reply) {
    return new Error(reply.error);
  }
  if ("set" in reply) {
    return new Set(reply.set.map((part) => received(part, map)));
  }
  return map(reply.map.map(([first, second]) => [received(first, map), received(second, map)]));
}

const MAPS: Record<string, (pairs: [unknown, unknown][]) => unknown> = {
  Map: (pairs) => new Map(pairs),
  "Map of strings": (pairs) => new Map(pairs.map(([first, second]) => [String(first), second])),
  object: (pairs) => Object.fromEntries(pairs.map(([first, second]) => [String(first), second])),
  "flat array": (pairs) => pairs.flat(1),
};

/** Makes the shape of a number, as the compressor does. */
function shaped(table: CommandTable, number: number): Shape | undefined {
  const row = table.shapes()[number];
  if (row === undefined) {
    return undefined;
  }
  if (row.kind === "value" || row.kind === "transaction") {
    return { kind: row.kind };
  }
  const inner = shaped(table, row.inner ?? -1);
  assert.ok(inner !== undefined);
  switch (row.kind) {
    case "each":
      return { kind: row.kind, inner, hasArgumentsKeys: row.hasArgumentsKeys };
    case "element":
      return { kind: row.kind, inner, at: row.at ?? 0, hasKey: row.hasKey };
    case "pairs":
      return { kind: row.kind, inner, hasKey: row.hasKey };
  }
}

/** Expects the values that the vectors have, each with its key, and everything else untouched. */
function expectValues(table: CommandTable, each: CommandVectors["replies"][number], kind: string): void {
  const map = MAPS[kind];
  assert.ok(map !== undefined);
  const { name, args } = split(each.arguments);
  const shape = shaped(table, table.read(name, args, 0).shape);
  const found: [string, string | null][] = [];
  const before = received(each.reply, map);
  const visited = shape && replaced(shape, received(each.reply, map), (value, key) => {
    const named = typeof key === "number" ? args[table.keys(name, args, 0)[key] ?? -1] : key;
    found.push([value.toString(), named?.toString() ?? null]);
    return value;
  });
  assert.deepEqual(found, each.values, `${JSON.stringify(each)} as ${kind}`);
  if (shape !== undefined) {
    assert.deepEqual(visited, before);
  }
}

describe("the command table", () => {
  const table = new addon.CommandTable([...TYPES]);

  it("finds values and their keys, wherever the name stands", () => {
    const unrefused = commands.filter(({ refused }) => refused === undefined);
    assert.ok(unrefused.length > 100);
    for (const each of unrefused) {
      const { name, args } = split(each.arguments);
      const wanted = (each.values ?? []).map(([at, key]) => ({ at: at - 1, key: key - 1 }));
      assert.deepEqual(table.read(name, args, 0).values, wanted, JSON.stringify(each));
      assert.deepEqual(table.read(name, asBuffers(args), 0).values, wanted, JSON.stringify(each));
      const named = (each.values ?? []).map(([at, key]) => ({ at, key }));
      assert.deepEqual(table.read(name, [name, ...args], 1).values, named, JSON.stringify(each));
    }
  });

  it("knows the keys", () => {
    for (const { arguments: words, keys } of positions) {
      const { name, args } = split(words);
      assert.deepEqual(table.keys(name, args, 0), (keys ?? []).map((at) => at - 1), JSON.stringify(words));
    }
    for (const { arguments: words, keys } of commands.filter((each) => each.fits && each.keys !== undefined)) {
      const { name, args } = split(words);
      assert.deepEqual(table.keys(name, args, 0), (keys ?? []).map((at) => at - 1), JSON.stringify(words));
    }
  });

  for (const type of TYPES) {
    it(`refuses what must not be run on compressed ${type}, and nothing else`, () => {
      const table = new addon.CommandTable([type]);
      const client = new Compressor(new Configuration({ valueTypes: [type] }));
      for (const each of commands) {
        const { name, args } = split(each.arguments);
        const message = each.refused?.[type];
        if (message === undefined) {
          assert.doesNotThrow(() => table.read(name, args, 0), JSON.stringify(each));
          assert.doesNotThrow(() => client.request(name, [...args], 0));
        } else {
          assert.throws(() => table.read(name, args, 0), { message, code: "CommandRefused" });
          const command = name.toUpperCase();
          assert.throws(() => client.request(name, [...args], 0), { message, command, name: "CommandRefusedError" });
        }
      }
    });
  }

  it("leaves alone the commands of types that are not compressed", () => {
    const strings = new addon.CommandTable(["strings"]);
    for (const name of ["HSET", "LPUSH", "XADD"]) {
      assert.deepEqual(strings.read(name, ["k", "f", "v"], 0), { shape: UNTOUCHED, values: [] });
      assert.equal(strings.commands().find((row) => row.name === name)?.treatment, "untouched");
    }
  });

  for (const kind of Object.keys(MAPS)) {
    it(`finds the values of a reply whose maps come as ${kind}`, () => {
      for (const each of replies) {
        expectValues(table, each, kind);
      }
    });
  }

  it("says the same of a command by its row and by its arguments", () => {
    for (const { name, treatment, shape } of table.commands()) {
      if (treatment === "read") {
        assert.equal(table.read(name, ["k"], 0).shape, shape);
      } else if (treatment === "untouched") {
        assert.deepEqual(table.read(name, ["k"], 0), { shape: UNTOUCHED, values: [] });
      }
    }
  });
});

/** Options decide on the replies of these. */
const OPTIONAL = ["SET", "HSCAN", "HRANDFIELD"];

describe("the table without the addon", () => {
  for (const type of TYPES) {
    it(`refuses what never works on compressed ${type}, with the same text`, () => {
      const table = new FallbackTable([type]);
      const rows = new Map(table.commands().map((row) => [row.name, row]));
      for (const each of commands) {
        const { name } = split(each.arguments);
        const message = each.refused?.[type];
        // These are refused for an option or an argument, at which the table does not look.
        if (message === undefined || ["SET", "SORT", "SORT_RO", "LINSERT"].includes(name)) {
          assert.doesNotThrow(() => table.read(name));
        } else {
          assert.throws(() => table.read(name), { message, code: "CommandRefused" });
          const { number = -1 } = rows.get(name.toUpperCase()) ?? {};
          assert.throws(() => table.encode(new Fallback("it is not there"), number), { message, code: "CommandRefused" });
          assert.equal(rows.get(name.toUpperCase())?.treatment, "asked");
        }
      }
    });
  }

  for (const kind of Object.keys(MAPS)) {
    it(`finds the values of a reply whose maps come as ${kind}`, () => {
      const table = new FallbackTable(TYPES);
      const decided = replies.filter((each) => !OPTIONAL.includes(split(each.arguments).name));
      assert.ok(decided.length > 30);
      for (const each of decided) {
        expectValues(table, each, kind);
      }
    });
  }
});
