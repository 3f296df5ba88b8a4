/** Connections for commands about dictionaries, as duplicates of a client of ioredis or iovalkey. */

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

/** A client: what of it is used here. */
interface Client {
  callBuffer(name: string, ...args: (string | Buffer)[]): Promise<unknown>;
  duplicate(...overrides: object[]): Client;
  /** Of a Cluster. */
  nodes?(role: "master"): Client[];
  disconnect(): void;
  on(event: "error", listener: () => void): unknown;
  readonly options: Options;
}

interface Options {
  readonly commandTimeout?: number;
  readonly redisOptions?: Options;
}

/**
 * Returns how dictionaries are reached from a client.
 *
 * @param duplicate Duplicates the client without compressing the duplicate.
 * @param database Number of the database, if it is not the client's.
 */
export function ioredisAccess(
  client: object,
  duplicate: (...overrides: object[]) => object,
  database: number | undefined,
): DictionaryAccess {
  const { options } = client as Client;
  const isCluster = "nodes" in client;
  const timeout = options.commandTimeout ?? options.redisOptions?.commandTimeout;
  const own = {
    keyPrefix: "",
    lazyConnect: true,
    enableAutoPipelining: false,
    // Without a connection it is known at once.
    maxRetriesPerRequest: 0,
    ...(database !== undefined && { db: database }),
  };
  const open = (): Client =>
    quiet(
      (isCluster
        ? duplicate([], { ...own, redisOptions: { ...options.redisOptions, ...own } })
        : duplicate(own)) as Client,
    );
  return {
    connect: () => new Duplicate(open, timeout ?? LONGEST_WAIT),
    readTimeout: timeout === undefined ? undefined : timeout / 1000,
  };
}

/** A connection of its own, or the connections of a Cluster's duplicate. */
class Duplicate implements DictionaryConnection {
  #client: Client | undefined;

  constructor(
    private readonly open: () => Client,
    private readonly timeout: number,
  ) {}

  async send(commands: readonly Words[]): Promise<Outcome[]> {
    const client = (this.#client ??= this.open());
    try {
      return await bounded(Promise.all(commands.map((words) => outcome(client, words))), this.timeout);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  async alone<T>(key: Buffer, work: (connection: DictionaryConnection) => Promise<T>): Promise<T> {
    const client = (this.#client ??= this.open());
    const nodes = client.nodes?.("master");
    if (nodes === undefined) {
      return lent(new Duplicate(this.open, this.timeout), work);
    }
    for (const node of nodes) {
      const connection = new Duplicate(() => quiet(node.duplicate({ lazyConnect: true })), this.timeout);
      // A node that does not have the key says so.
      const [answer] = await connection.send([["EXISTS", key]]);
      if (!(answer instanceof ReplyFailure && answer.reason.startsWith("MOVED"))) {
        return lent(connection, work);
      }
      connection.close();
    }
    throw new Error(`no node of the cluster has the key ${key.toString()}`);
  }

  close(): void {
    this.#client?.disconnect();
    this.#client = undefined;
  }
}

async function outcome(client: Client, [name = "", ...args]: Words): Promise<Outcome> {
  try {
    return (await client.callBuffer(name.toString(), ...args)) as Outcome;
  } catch (error) {
    if (error instanceof Error && error.name === "ReplyError") {
      return new ReplyFailure(error.message);
    }
    throw error;
  }
}

/** Keeps what each command is told anyway from being printed. */
function quiet(client: Client): Client {
  client.on("error", () => undefined);
  return client;
}
