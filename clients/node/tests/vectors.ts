/** The test vectors of the specification (spec/vectors): how they write bytes down, and what is about readers. */

import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { UndecodableKind } from "../src";

/** Bytes in place, or by a rule where they would be long. */
export type Bytes =
  | { text: string }
  | { hex: string }
  | { repeat: Bytes; size: number }
  | { count: string; size: number }
  | { noise: number; size: number }
  | { join: Bytes[] };

/** A file about readers: envelopes.json or lz4_dictionary.json. */
export interface ReaderVectors {
  dictionaries: Record<string, { id: number; bytes: Bytes }>;
  cases: ReaderCase[];
}

/** An envelope, and what a reader makes of it. */
export interface ReaderCase {
  name: string;
  envelope: Bytes;
  expect: "value" | "untouched" | "error";
  value?: Bytes;
  error?: UndecodableKind;
  options?: { max_decompressed_size?: number };
  dictionaries?: string[];
}

/** Path of a file in the folder spec of the repository. */
export function specified(name: string): string {
  return join(__dirname, "../../../../spec", name);
}

/** Reads a file of vectors. */
export function vectors(name: string): unknown {
  return JSON.parse(readFileSync(specified(`vectors/${name}`), "utf8"));
}

/** Expands bytes. */
export function expanded(bytes: Bytes): Buffer {
  if ("text" in bytes) {
    return Buffer.from(bytes.text);
  }
  if ("hex" in bytes) {
    return Buffer.from(bytes.hex, "hex");
  }
  if ("join" in bytes) {
    return Buffer.concat(bytes.join.map(expanded));
  }
  if ("repeat" in bytes) {
    return Buffer.alloc(bytes.size, expanded(bytes.repeat));
  }
  return "count" in bytes ? counted(bytes.count, bytes.size) : noise(BigInt(bytes.noise), bytes.size);
}

function counted(text: string, size: number): Buffer {
  const parts: string[] = [];
  for (let number = 0, length = 0; length < size; number++) {
    const part = text.replaceAll("#", String(number));
    parts.push(part);
    length += Buffer.byteLength(part);
  }
  return Buffer.from(parts.join("")).subarray(0, size);
}

/** Returns the top bytes of Knuth's linear congruential generator. */
export function noise(seed: bigint, size: number): Buffer {
  const made = Buffer.alloc(size);
  let state = seed;
  for (let at = 0; at < size; at++) {
    state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
    made[at] = Number(state >> 56n);
  }
  return made;
}
