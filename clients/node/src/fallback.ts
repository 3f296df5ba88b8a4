/**
 * Reading without the addon: plain values and those of lz4 are read, and values are written plain.
 *
 * The command table is the specification's, of which this follows replies and refusals, and no arguments: there is
 * nothing to encode. A rule that holds only with some option does not hold here.
 */

import { decompressBlock, Lz4Error } from "./lz4";
import {
  NO_REPLY,
  UNTOUCHED,
  type CommandRow,
  type CommandTable,
  type Failure,
  type ShapeRow,
  type ValueCodec,
  type ValuePlace,
} from "./native";

const HEADER = 5;
const LZ4 = 0x02;
/** Numbers that backends have, or may have one day. */
const RANGES = [
  [0x01, 0x1f],
  [0x80, 0x9f],
] as const;
const NAMES: Readonly<Record<number, string>> = {
  0x01: "zstd",
  0x02: "lz4",
  0x81: "zstd_dictionary",
  0x82: "lz4_dictionary",
};

/** Reads what needs no addon. */
export class Fallback implements ValueCodec {
  #reads = 0;
  #failures = 0;

  /**
   * @param reason Why the addon is not there.
   * @param most Most bytes of a value.
   */
  constructor(
    private readonly reason: string,
    private readonly most = Infinity,
  ) {}

  encode(): null {
    return null;
  }

  encodeOnWorker(): Promise<null> {
    return Promise.resolve(null);
  }

  decode(stored: Buffer, asText: boolean, left: number): Buffer | string | Failure | undefined {
    const header = this.inspect(stored);
    if (header === null) {
      return undefined;
    }
    const read = this.#decoded(stored, header.backend, left);
    if (Buffer.isBuffer(read)) {
      this.#reads += 1;
      return asText ? read.toString() : read;
    }
    this.#failures += 1;
    return read;
  }

  decodeOnWorker(stored: Buffer, left: number): Promise<Buffer | Failure | null> {
    return Promise.resolve((this.decode(stored, false, left) as Buffer | Failure | undefined) ?? null);
  }

  inspect(stored: Buffer): { backend: number; name?: string; size?: number } | null {
    // The version, 0, is the fourth byte.
    if (stored.length < HEADER || stored.readUInt32BE(0) !== 0x00010200) {
      return null;
    }
    const backend = stored.readUInt8(4);
    if (!RANGES.some(([lowest, highest]) => backend >= lowest && backend <= highest)) {
      return null;
    }
    const name = NAMES[backend];
    const size = backend === LZ4 && stored.length > HEADER + 4 ? stored.readUInt32LE(HEADER) : undefined;
    return { backend, ...(name !== undefined && { name }), ...(size !== undefined && { size }) };
  }

  excludes(): boolean {
    return false;
  }

  countPlain(): void {
    // No statistics without the addon have these.
  }

  countUnread(): void {
    this.#failures += 1;
  }

  count(): void {
    // There are no dictionaries.
  }

  reads(): number {
    return 1;
  }

  statistics(): Record<string, number> {
    return { decoded_values_lz4: this.#reads, decode_failures: this.#failures };
  }

  #decoded(stored: Buffer, backend: number, left: number): Buffer | Failure {
    if (backend !== LZ4) {
      const name = NAMES[backend];
      return name === undefined
        ? { kind: "unknown_backend", backend, why: "this version does not know the backend" }
        : { kind: "addon_missing", backend, why: `${name} needs the addon, and ${this.reason}` };
    }
    try {
      return decompressBlock(stored.subarray(HEADER), Math.min(left, this.most));
    } catch (error) {
      if (!(error instanceof Lz4Error)) {
        throw error;
      }
      return { kind: error.kind, backend, why: error.message };
    }
  }
}

/** The part of spec/commands.json that is used here. */
interface Specification {
  message: string;
  reasons: Record<string, string>;
  shapes: Record<string, SpecifiedShape>;
  commands: Record<
    string,
    {
      type?: string;
      reply?: { shape: string };
      refuse?: { types: string[]; with?: string[]; reason: string }[];
    }
  >;
}

type SpecifiedShape =
  | string
  | { each: SpecifiedShape; key?: string }
  | { at: number; is: SpecifiedShape; key?: string }
  | { pairs: SpecifiedShape; key?: string };

/** Knows the replies of commands, and which are refused. */
export class FallbackTable implements CommandTable {
  readonly #specification: Specification;
  readonly #names: readonly string[];
  readonly #types: readonly string[];
  readonly #shapes: ShapeRow[] = [];
  readonly #replies = new Map<string, number>();

  constructor(types: readonly string[]) {
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- it is not needed where the addon is
    this.#specification = require("./commands.json") as Specification;
    this.#names = Object.keys(this.#specification.commands);
    this.#types = types;
    for (const [name, row] of Object.entries(this.#specification.commands)) {
      if (row.reply !== undefined && (row.type === undefined || types.includes(row.type))) {
        this.#replies.set(name, this.#shape(row.reply.shape));
      }
    }
  }

  commands(): CommandRow[] {
    return this.#names.map((name, number) => ({
      name,
      number,
      treatment: this.#reason(name) === undefined && !this.#replies.has(name) ? "untouched" : "asked",
      shape: this.#replies.get(name) ?? NO_REPLY,
    }));
  }

  shapes(): ShapeRow[] {
    return this.#shapes;
  }

  read(name: string): { shape: number; values: ValuePlace[] } {
    const command = name.toUpperCase();
    const reason = this.#reason(command);
    if (reason !== undefined) {
      const message = this.#specification.message.replace("{command}", command).replace("{reason}", reason);
      throw Object.assign(new Error(message), { code: "CommandRefused" });
    }
    return { shape: this.#replies.get(command) ?? UNTOUCHED, values: [] };
  }

  encode(_: ValueCodec, command: number): number {
    return this.read(this.#names[command] ?? "").shape;
  }

  /** Returns the first argument; all of them, if each value in the reply belongs to one. */
  keys(name: string, args: unknown[], from: number): number[] {
    const shape = this.#shapes[this.#replies.get(name.toUpperCase()) ?? NO_REPLY];
    const keys = args.map((_, at) => at).slice(from);
    return shape?.hasArgumentsKeys === true ? keys : keys.slice(0, 1);
  }

  /** Returns the text of the reason why a command is refused, if it is. */
  #reason(name: string): string | undefined {
    const rules = this.#specification.commands[name]?.refuse ?? [];
    const rule = rules.find((each) => each.with === undefined && each.types.some((type) => this.#types.includes(type)));
    return rule && this.#specification.reasons[rule.reason];
  }

  /** Returns the number of a shape. */
  #shape(shape: SpecifiedShape): number {
    const named = typeof shape === "string" ? this.#specification.shapes[shape] : undefined;
    if (named !== undefined && named !== shape) {
      return this.#shape(named);
    }
    const at = this.#shapes.length;
    const row: ShapeRow = { kind: "value", hasArgumentsKeys: false, hasKey: false };
    this.#shapes.push(row);
    if (typeof shape === "string") {
      row.kind = shape === "transaction" ? "transaction" : "value";
    } else if ("each" in shape) {
      Object.assign(row, { kind: "each", hasArgumentsKeys: shape.key === "argument", inner: this.#shape(shape.each) });
    } else if ("pairs" in shape) {
      Object.assign(row, { kind: "pairs", hasKey: shape.key === "reply", inner: this.#shape(shape.pairs) });
    } else {
      const parts = { at: shape.at, hasKey: shape.key === "reply", inner: this.#shape(shape.is) };
      Object.assign(row, { kind: "element", ...parts });
    }
    return at;
  }
}
