/**
 * For Keyv: an adapter for its option `compression`.
 *
 *     import { compression } from "snugly/keyv";
 *
 *     const cache = new Keyv({ store, compression: compression() });
 *
 * It knows what Keyv 5 and 6 hand over and take back, which is JSON and text, and imports nothing of Keyv. Stores need
 * not take bytes, so an envelope travels as base64.
 */

import { Codec, inspect } from "./codec";
import { Configuration, type CompressionOptions } from "./configuration";

/** Start of a text that this adapter has made; the next letter says of what. */
const PREFIX = "snugly:";
/** Kinds of texts: an envelope of a text, an envelope of JSON, and a text that starts like one of these. */
const TEXT = "t";
const JSON_TEXT = "j";
const AS_IT_IS = "=";
/** Start of bytes in JSON, and of texts that start like it, in the way of Keyv's own serializer. */
const BYTES = ":base64:";
const ESCAPE = ":";

/** Adapter for the option `compression` of Keyv. */
export interface KeyvCompression {
  /** Returns the value, or a text that stands for it and is shorter. */
  compress(value: unknown): Promise<string>;
  /**
   * Returns the value. One that is not compressed is returned as it is, and undefined, which is a miss, stands for one
   * that cannot be read.
   */
  decompress(stored: unknown): Promise<string>;
}

/**
 * Creates an adapter for the option `compression` of Keyv 5 and 6.
 *
 * Throws ConfigurationError for settings that only clients have: the backend `auto`, `exclude`, and a dictionary other
 * than a given one.
 *
 * @param options Settings of a Codec, but `existingEnvelopes` is `wrap` by default and `onUndecodable` is `miss`: each
 *   value is to come back as it was, and a cache can do without one.
 */
export function compression(options: CompressionOptions = {}): KeyvCompression {
  const settings: CompressionOptions = { existingEnvelopes: "wrap", onUndecodable: "miss", ...options };
  const codec = new Codec(settings);
  const { workerPoolFrom } = new Configuration(settings);
  return {
    // Keyv 6 declares texts. Keyv 5 hands over any value, and puts into JSON whatever it is given.
    compress: (value) => compressed(codec, workerPoolFrom, value) as Promise<string>,
    decompress: (stored) => decompressed(codec, workerPoolFrom, stored) as Promise<string>,
  };
}

async function compressed(codec: Codec, workerPoolFrom: number, value: unknown): Promise<unknown> {
  // UTF-8 has no half of a surrogate pair, but JSON has.
  const isText = typeof value === "string" && !/\p{Surrogate}/u.test(value);
  const text = isText ? value : toJson(value);
  if (text === undefined) {
    return value;
  }
  const bytes = Buffer.from(text);
  const encoded = bytes.length < workerPoolFrom ? codec.encode(bytes) : await codec.encodeOnWorker(bytes);
  if (encoded !== bytes) {
    const made = PREFIX + (isText ? TEXT : JSON_TEXT) + encoded.toString("base64");
    if (made.length < bytes.length) {
      return made;
    }
  }
  return typeof value === "string" && value.startsWith(PREFIX) ? PREFIX + AS_IT_IS + value : value;
}

async function decompressed(codec: Codec, workerPoolFrom: number, stored: unknown): Promise<unknown> {
  if (typeof stored !== "string" || !stored.startsWith(PREFIX)) {
    return stored;
  }
  const kind = stored.charAt(PREFIX.length);
  const rest = stored.slice(PREFIX.length + 1);
  if (kind === AS_IT_IS) {
    return rest;
  }
  const bytes = Buffer.from(rest, "base64");
  const envelope = inspect(bytes);
  if (envelope === undefined || (kind !== TEXT && kind !== JSON_TEXT)) {
    return stored;
  }
  const isLarge = (envelope.size ?? bytes.length) >= workerPoolFrom;
  const decoded = isLarge ? await codec.decodeOnWorker(bytes) : codec.decode(bytes);
  if (decoded === bytes) {
    return stored;
  }
  const text = decoded?.toString();
  return text === undefined || kind === TEXT ? text : fromJson(text);
}

/** Returns a value as JSON; undefined for one that JSON has not. */
function toJson(value: unknown): string | undefined {
  return JSON.stringify(value, function (this: Record<string, unknown>, name: string, part: unknown) {
    // A Buffer has been made something else by its toJSON.
    const original = this[name];
    if (Buffer.isBuffer(original)) {
      return BYTES + original.toString("base64");
    }
    return typeof part === "string" && part.startsWith(ESCAPE) ? ESCAPE + part : part;
  });
}

function fromJson(text: string): unknown {
  return JSON.parse(text, (_, part: unknown) => {
    if (typeof part !== "string" || !part.startsWith(ESCAPE)) {
      return part;
    }
    return part.startsWith(BYTES) ? Buffer.from(part.slice(BYTES.length), "base64") : part.slice(ESCAPE.length);
  });
}
