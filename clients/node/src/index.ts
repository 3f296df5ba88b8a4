/**
 * Transparent compression for the Node.js clients of Valkey and Redis.
 *
 *     import { Redis } from "ioredis";
 *     import { compress } from "snugly";
 *
 *     const cache = compress(new Redis(), { backend: "zstd" });
 *     await cache.set("page:1", "<html>".repeat(1000));
 *     await cache.get("page:1");
 */

export { Codec, decode, encode, inspect, type Envelope } from "./codec";
export { compress, statistics } from "./compress";
export type {
  CompressionBackend,
  CompressionOptions,
  ExistingEnvelopes,
  Goal,
  OnUndecodable,
  ValueType,
} from "./configuration";
export { Dictionary } from "./dictionary";
export { explain, type Explanation, type Measured } from "./explanation";
export {
  CommandRefusedError,
  ConfigurationError,
  DictionaryError,
  SnuglyError,
  UndecodableBatchError,
  UndecodableError,
  type UndecodableKind,
} from "./errors";
