/** Dictionaries: text that values repeat, so that they need not have it in themselves. */

import { readFileSync } from "node:fs";

import { DictionaryError } from "./errors";
import { loaded, type Dictionary as NativeDictionary } from "./native";

/** Most bytes of a trained dictionary, by default. */
const USUAL_BYTES = 16 << 10;

/** A dictionary that values are written with; made by `snugly train`, or by `train`. */
export class Dictionary {
  private constructor(
    /** @internal */
    readonly native: NativeDictionary,
  ) {}

  /** Throws DictionaryError for what is no dictionary. */
  static from(bytes: Uint8Array): Dictionary {
    return new Dictionary(made(() => new (addon().Dictionary)(Buffer.from(bytes))));
  }

  /** Reads a dictionary from a file. Throws DictionaryError for what is none. */
  static read(path: string): Dictionary {
    return Dictionary.from(made(() => readFileSync(path)));
  }

  /**
   * Trains a dictionary from values, on the worker pool: some hundred of one kind.
   *
   * Rejects with DictionaryError if none can be made of them.
   *
   * @param maxBytes Most bytes of the dictionary, from 256 to 1 MiB. Default: 16 KiB.
   */
  static async train(samples: Iterable<Uint8Array>, maxBytes = USUAL_BYTES): Promise<Dictionary> {
    try {
      const buffers = Array.from(samples, (sample) => Buffer.from(sample));
      return new Dictionary(await addon().Dictionary.train(buffers, maxBytes));
    } catch (error) {
      throw failed(error);
    }
  }

  /** ID that envelopes name it by. */
  get id(): number {
    return this.native.id;
  }

  /** Bytes to be stored in a file. */
  get bytes(): Buffer {
    return this.native.bytes;
  }
}

function addon() {
  if ("addon" in loaded) {
    return loaded.addon;
  }
  throw new DictionaryError(`dictionaries need the addon: ${loaded.reason}`);
}

function made<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw failed(error);
  }
}

function failed(error: unknown): DictionaryError {
  return error instanceof DictionaryError
    ? error
    : new DictionaryError(error instanceof Error ? error.message : String(error), { cause: error });
}
