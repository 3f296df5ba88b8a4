/**
 * LZ4 blocks, decoded in JavaScript, for where the addon is not there.
 *
 * The format is lz4_Block_format.md of the LZ4 project; the length of the value stands in front of it, in four bytes,
 * little-endian (spec/envelope.md, backend 02).
 */

/** A block that cannot be decoded. */
export class Lz4Error extends Error {
  constructor(
    readonly kind: "corrupt" | "too_large",
    message: string,
  ) {
    super(message);
  }
}

/** Bytes of the length in front. */
const LENGTH = 4;
/** Least length of a match. */
const MIN_MATCH = 4;

/**
 * Decodes a block with its length in front.
 *
 * Throws Lz4Error.
 *
 * @param most Most bytes of the value.
 */
export function decompressBlock(payload: Buffer, most: number): Buffer {
  if (payload.length < LENGTH) {
    throw new Lz4Error("corrupt", "the payload has no length");
  }
  const length = payload.readUInt32LE(0);
  if (length > most) {
    throw new Lz4Error("too_large", `the value claims ${length} bytes, and may have ${most}`);
  }
  // A byte of a block stands for 255 of a value at most.
  if (length > (payload.length - LENGTH) * 255) {
    throw new Lz4Error("corrupt", `${payload.length} bytes cannot be a value of ${length}`);
  }
  const reader = { payload, at: LENGTH };
  const out = Buffer.allocUnsafe(length);
  let end = 0;
  for (;;) {
    const token = byte(reader);
    const literals = extended(reader, token >> 4);
    if (literals > payload.length - reader.at || literals > length - end) {
      throw new Lz4Error("corrupt", "literals go beyond the end");
    }
    payload.copy(out, end, reader.at, reader.at + literals);
    reader.at += literals;
    end += literals;
    if (reader.at === payload.length) {
      if ((token & 15) > 0) {
        throw new Lz4Error("corrupt", "the block ends before a match");
      }
      break;
    }
    const offset = byte(reader) | (byte(reader) << 8);
    const match = extended(reader, token & 15) + MIN_MATCH;
    if (offset === 0 || offset > end || match > length - end) {
      throw new Lz4Error("corrupt", "a match goes beyond an end");
    }
    copyMatch(out, end, offset, match);
    end += match;
  }
  if (end !== length) {
    throw new Lz4Error("corrupt", `the value has ${end} bytes, and claims ${length}`);
  }
  return out;
}

interface Reader {
  readonly payload: Buffer;
  at: number;
}

function byte(reader: Reader): number {
  const value = reader.payload[reader.at++];
  if (value === undefined) {
    throw new Lz4Error("corrupt", "the block ends in the middle of a sequence");
  }
  return value;
}

/** Reads a length of four bits with the bytes that go on with it. */
function extended(reader: Reader, length: number): number {
  if (length < 15) {
    return length;
  }
  for (;;) {
    const more = byte(reader);
    length += more;
    if (more < 255) {
      return length;
    }
  }
}

/** Copies bytes from `offset` before `end`, which may overlap with where they go. */
function copyMatch(out: Buffer, end: number, offset: number, length: number): void {
  if (offset >= length) {
    out.copyWithin(end, end - offset, end - offset + length);
    return;
  }
  for (let at = end; at < end + length; at++) {
    out[at] = out[at - offset] ?? 0;
  }
}
