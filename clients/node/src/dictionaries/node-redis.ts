/** Connections for commands about dictionaries, as duplicates of clients of node-redis. */

import {
  bounded,
  lent,
  LONGEST_WAIT,
  ReplyFailure,
  type DictionaryAccess,
  type DictionaryConnection,
  type Outcome,
  type Words,
} from "./connection";
import type { Keeping } from "./manager";

/** A client of one server: what of it is used here. */
interface Client {
  readonly isOpen: boolean;
  readonly options?: { readonly socket?: object };
  connect(): Promise<unknown>;
  destroy(): void;
  readonly duplicate: (this: Client, overrides: object) => Client;
  on(event: "error" | "ready" | "end", listener: () => void): unknown;
  sendCommand(args: Words, options: object): Promise<unknown>;
}

/** First byte of strings in RESP. */
const BLOB_STRING = 36;

/** Keeping of the dictionaries of a client, or of a pool, cluster or sentinel with its clients. */
export class NodeRedisKeeping implements Keeping {
  readonly access: DictionaryAccess = {
    connect: (key) => new Duplicate(key, () => this.#duplicates()),
    readTimeout: undefined,
  };
  /** Clients that there are, with what duplicates each without compressing the duplicate. */
  readonly #members = new Map<Client, (overrides: object) => Client>();
  #manager: Parameters<Keeping["follow"]>[0] | undefined;

  /** @param database Number of the database of the dictionaries, if it is not the client's. */
  constructor(private readonly database: number | undefined) {}

  /** Takes in a client before it compresses. */
  join(member: object): void {
    const client = member as Client;
    const { duplicate } = client;
    this.#members.set(client, (overrides) => duplicate.call(client, overrides));
    client.on("ready", () => this.#manager?.hurry());
    client.on("end", () => {
      // The last one may be connected again, and tells where the server is.
      if (this.#members.size > 1) {
        this.#members.delete(client);
      }
    });
  }

  follow(manager: Parameters<Keeping["follow"]>[0]): void {
    this.#manager = manager;
  }

  /** Ends it, since its client is closed. */
  end(): void {
    void this.#manager?.stop();
  }

  /** Duplicates the clients, the open ones first, as they are asked for. */
  *#duplicates(): Iterable<Client> {
    for (const [client, duplicate] of [...this.#members].sort(([a], [b]) => Number(b.isOpen) - Number(a.isOpen))) {
      const made = duplicate({
        keyPrefix: undefined,
        clientSideCache: undefined,
        commandOptions: undefined,
        // Without a connection it is known at once.
        socket: { ...client.options?.socket, reconnectStrategy: false },
        ...(this.database !== undefined && { database: this.database }),
      });
      // Each command is told of a lost connection anyway.
      made.on("error", () => undefined);
      yield made;
    }
  }
}

/** A connection to the server of a key. */
class Duplicate implements DictionaryConnection {
  #client: Client | undefined;

  constructor(
    private readonly key: Buffer,
    private readonly open: () => Iterable<Client>,
  ) {}

  async send(commands: readonly Words[]): Promise<Outcome[]> {
    try {
      return await bounded(this.#send(commands), LONGEST_WAIT);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  alone<T>(key: Buffer, work: (connection: DictionaryConnection) => Promise<T>): Promise<T> {
    return lent(new Duplicate(key, this.open), work);
  }

  close(): void {
    if (this.#client?.isOpen === true) {
      this.#client.destroy();
    }
    this.#client = undefined;
  }

  async #send(commands: readonly Words[]): Promise<Outcome[]> {
    const client = (this.#client ??= await this.#found());
    const outcomes = await Promise.all(commands.map((words) => outcome(client, words)));
    if (outcomes.some(isMoved)) {
      throw new Error(`the key ${this.key.toString()} has moved to another node`);
    }
    return outcomes;
  }

  /** Finds a server that has the key: others say that it is elsewhere. */
  async #found(): Promise<Client> {
    let reason: unknown = new Error("there is no connection yet");
    for (const client of this.open()) {
      try {
        await client.connect();
        if (!isMoved(await outcome(client, ["EXISTS", this.key]))) {
          return client;
        }
      } catch (error) {
        reason = error;
      }
      if (client.isOpen) {
        client.destroy();
      }
    }
    throw reason;
  }
}

async function outcome(client: Client, words: Words): Promise<Outcome> {
  try {
    return (await client.sendCommand(words, { typeMapping: { [BLOB_STRING]: Buffer } })) as Outcome;
  } catch (error) {
    if (error instanceof Error && isReply(error)) {
      return new ReplyFailure(error.message);
    }
    throw error;
  }
}

function isMoved(answer: Outcome): boolean {
  return answer instanceof ReplyFailure && answer.reason.startsWith("MOVED");
}

/** Returns whether an error came from the server: the library's ErrorReply, or a kind of it. */
function isReply(error: Error): boolean {
  for (let kind: unknown = error.constructor; typeof kind === "function"; kind = Object.getPrototypeOf(kind)) {
    if (kind.name === "ErrorReply") {
      return true;
    }
  }
  return false;
}
