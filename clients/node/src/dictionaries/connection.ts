/** Connections for commands about dictionaries, which every library of clients makes in its own way. */

/** Words of a command. */
export type Words = readonly (string | Buffer)[];

/** A reply, or a failure in its place. */
export type Outcome = Buffer | string | number | null | unknown[] | ReplyFailure;

/** An error that the server answered. */
export class ReplyFailure {
  /** Whether permission is missing. */
  readonly isDenied: boolean;

  constructor(readonly reason: string) {
    this.isDenied = reason.startsWith("NOPERM");
  }
}

/** A connection to where dictionaries are. Bulk strings of replies are Buffers; nothing is compressed. */
export interface DictionaryConnection {
  /** Sends commands together, and returns the outcome of each. Rejects if the server cannot be reached. */
  send(commands: readonly Words[]): Promise<Outcome[]>;
  /** Lends a connection to the server of a key that nobody else uses, for WATCH and MULTI. */
  alone<T>(key: Buffer, work: (connection: DictionaryConnection) => Promise<T>): Promise<T>;
  /** Closes it; it opens again with the next command. */
  close(): void;
}

/** How dictionaries are reached from a client. */
export interface DictionaryAccess {
  /** Makes a connection to where a key is that is not open yet. */
  connect(key: Buffer): DictionaryConnection;
  /** Seconds that the client waits for a reply, if it does not wait for ever. */
  readonly readTimeout: number | undefined;
}

/** Longest time that a server may say nothing, in milliseconds, where the client's settings have no limit. */
export const LONGEST_WAIT = 10_000;

/** Rejects when a time in milliseconds has passed without an answer. */
export async function bounded<T>(answer: Promise<T>, most: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`the server has not answered for ${most / 1000} s`));
    }, most);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Lends a connection, and closes it afterwards. */
export async function lent<T>(
  connection: DictionaryConnection,
  work: (connection: DictionaryConnection) => Promise<T>,
): Promise<T> {
  try {
    return await work(connection);
  } finally {
    connection.close();
  }
}
