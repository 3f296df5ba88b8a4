/** Errors of snugly. */

/** Base of all errors of this package. */
export class SnuglyError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** A setting, or a client that cannot be compressed; the message says what is allowed. Nothing has been changed. */
export class ConfigurationError extends SnuglyError {}

/** Bytes that are not a dictionary, or samples of which none can be made; the message says why. */
export class DictionaryError extends ConfigurationError {}

/** A command that the server would run on compressed bytes. It has not been sent. */
export class CommandRefusedError extends SnuglyError {
  /** @param command Its name in capitals. */
  constructor(
    message: string,
    readonly command: string,
  ) {
    super(message);
  }
}

/** Reason why a value cannot be read (spec/envelope.md). */
export type UndecodableKind =
  | "unknown_backend"
  | "corrupt"
  | "dictionary_missing"
  | "too_large"
  /** The addon, which reads this backend, is not loaded. */
  | "addon_missing";

/** A value that was stored compressed and cannot be read. */
export class UndecodableError extends SnuglyError {
  readonly kind: UndecodableKind;
  /** The key that it was read from, if that is known. */
  readonly key: Buffer | undefined;
  /** Number of the backend in the envelope. */
  readonly backend: number;
  /** The bytes as the server has them. */
  readonly stored: Buffer;

  constructor(
    message: string,
    details: { kind: UndecodableKind; key: Buffer | undefined; backend: number; stored: Buffer },
  ) {
    super(message);
    this.kind = details.kind;
    this.key = details.key;
    this.backend = details.backend;
    this.stored = details.stored;
  }
}

/** A value in a transaction that cannot be read; what else it was answered is there, as in a MultiErrorReply. */
export class UndecodableBatchError extends UndecodableError {
  /** Indexes of the errors among the replies. */
  readonly errorIndexes: readonly number[];

  /** @param replies Replies to all commands; for a value that cannot be read an UndecodableError. */
  constructor(
    first: UndecodableError,
    readonly replies: readonly unknown[],
  ) {
    super(first.message, first);
    this.errorIndexes = replies.flatMap((reply, at) => (reply instanceof Error ? at : []));
  }

  *errors(): Generator {
    for (const at of this.errorIndexes) {
      yield this.replies[at];
    }
  }
}
