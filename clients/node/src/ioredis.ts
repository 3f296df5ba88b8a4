/**
 * Compression under ioredis and iovalkey: Redis, Cluster, pipelines, transactions and auto-pipelining.
 *
 * All commands of a client go through its `sendCommand`, from whatever queue they come; there their values are encoded,
 * once. The reply comes to a command's `transformReply` as Buffers, before the library makes text of it. It knows these
 * two, and no bytes of envelopes.
 */

import type { Budget, Compressor, Treatment } from "./compressor";
import { ioredisAccess } from "./dictionaries/ioredis";
import type { Keeping } from "./dictionaries/manager";
import { OrderedSender } from "./ordered";
import type { Shape } from "./shapes";

/** A command of ioredis: what of it is used here. */
interface Command {
  name: string;
  args: unknown[];
  bufferMode?: boolean;
  replyEncoding?: string | null | undefined;
  readonly promise: Promise<unknown>;
  transformReply: (reply: unknown) => unknown;
  reject(error: unknown): void;
  /** Null if compression leaves it alone. */
  [TREATMENT]?: Treatment | null;
  [BATCH]?: Batch;
}

interface Stream {
  isPipeline?: boolean;
}

interface Pipeline {
  readonly _queue: readonly Command[];
  sendCommand: (command: Command) => unknown;
  addBatch(commands: unknown[][]): unknown;
  resolve: (results: unknown) => void;
}

/** A client of ioredis or iovalkey: what of it is used here. */
export interface IoredisClient {
  readonly status: string;
  readonly options: object;
  readonly sendCommand: (command: unknown, ...rest: unknown[]) => unknown;
  readonly pipeline: (commands?: unknown[][]) => unknown;
  readonly multi: (...args: never[]) => unknown;
  readonly duplicate: (...args: never[]) => unknown;
  addBuiltinCommand(name: string): void;
  on(event: string, listener: () => void): unknown;
  prependListener(event: string, listener: () => void): unknown;
}

/** Treatment of a command that has been encoded: retries, redirections and offline queues leave it alone. */
const TREATMENT = Symbol("snugly.treatment");
/** The commands that a command is sent with. */
const BATCH = Symbol("snugly.batch");
/** Description of the symbol by which an automatic pipeline keeps the callbacks of its commands. */
const AUTOMATIC = "callbacks";
/** Commands that the library sends while it connects; they must not wait for what is sent afterwards. */
const HANDSHAKE: ReadonlySet<string> = new Set(["auth", "client", "hello", "info", "readonly", "select"]);

/** Returns whether this is a client of ioredis or iovalkey. */
export function isIoredis(client: object): client is IoredisClient {
  const methods = ["sendCommand", "pipeline", "multi", "duplicate", "addBuiltinCommand"];
  return methods.every((name) => typeof (client as Record<string, unknown>)[name] === "function");
}

/**
 * Makes a client compress.
 *
 * @param adopt Makes a duplicate of this client compress, which may have other options.
 * @returns How its dictionaries are kept.
 */
export function compressIoredis(
  client: IoredisClient,
  compressor: Compressor,
  adopt: (duplicate: object, hasOtherOptions: boolean) => void,
): Keeping {
  const commands = new Commands(compressor);
  const sender = new OrderedSender();
  // Until the event the library sends what it has kept, in the databases of then.
  let isOpen = client.status === "ready";
  client.prependListener("ready", () => {
    isOpen = true;
  });
  client.on("close", () => {
    isOpen = false;
    commands.forget();
  });
  const original = {
    sendCommand: client.sendCommand,
    pipeline: client.pipeline as (commands?: unknown) => unknown,
    multi: client.multi as (...args: unknown[]) => unknown,
    duplicate: client.duplicate as (...args: unknown[]) => object,
  };

  const sendCommand = (command: Command, stream?: Stream, ...rest: unknown[]): unknown => {
    try {
      commands.prepare(command, stream?.isPipeline === true);
    } catch (error) {
      command.reject(error);
      return command.promise;
    }
    const batch = command[BATCH];
    const isOwn = HANDSHAKE.has(command.name) && !(isOpen && client.status === "ready");
    // A command that is sent again has had its turn.
    if (batch?.isSent === true || isOwn) {
      return original.sendCommand.call(client, command, stream, ...rest);
    }
    let sent: unknown = command.promise;
    sender.pass(batch?.ready, () => {
      if (batch !== undefined) {
        batch.isSent = true;
      }
      sent = original.sendCommand.call(client, command, stream, ...rest);
    });
    return sent;
  };

  const adoptPipeline = (made: unknown, batch: unknown): unknown => {
    if (isPipeline(made)) {
      compressPipeline(made, commands, compressor.budget());
      if (Array.isArray(batch)) {
        made.addBatch(batch as unknown[][]);
      }
    }
    return made;
  };

  Object.assign(client, {
    sendCommand,
    pipeline: (batch?: unknown[][]) => adoptPipeline(original.pipeline.call(client), batch),
    multi: (batch?: unknown, options?: unknown) => {
      const given = Array.isArray(batch) ? options : batch;
      return adoptPipeline(original.multi.call(client, given), batch);
    },
    duplicate: (...args: unknown[]) => {
      const made = original.duplicate.apply(client, args);
      adopt(made, args.some(hasOptions));
      return made;
    },
  });

  const { dictionaryDatabase } = compressor.configuration;
  return {
    access: ioredisAccess(client, (...overrides) => original.duplicate.apply(client, overrides), dictionaryDatabase),
    follow: (manager) => {
      client.on("ready", () => {
        manager.hurry();
      });
      client.on("end", () => {
        void manager.stop();
      });
    },
  };
}

/** Encodes, or refuses, what is put into a pipeline at once, and waits for the values in the results of EXEC. */
function compressPipeline(pipeline: Pipeline, commands: Commands, budget: Budget): void {
  const { sendCommand, resolve } = pipeline;
  const batch = new Batch();
  const refused: { at: number; error: unknown }[] = [];
  let seen = 0;
  let hasExec = false;
  // MULTI is there before.
  for (const command of pipeline._queue) {
    commands.prepare(command, true, budget, batch);
  }
  pipeline.sendCommand = (command) => {
    hasExec ||= command.name === "exec";
    const at = seen++;
    try {
      commands.prepare(command, true, budget, batch);
    } catch (error) {
      if (!isAutomatic(pipeline)) {
        throw error;
      }
      // The library hands results out by their places.
      refused.push({ at, error });
      return pipeline;
    }
    return sendCommand.call(pipeline, command);
  };
  pipeline.resolve = (results) => {
    for (const { at, error } of refused.splice(0)) {
      (results as unknown[]).splice(at, 0, [error]);
    }
    if (!hasExec) {
      resolve.call(pipeline, results);
      return;
    }
    void settled(results).then((all) => {
      resolve.call(pipeline, all);
    });
  };
}

/** Commands that are sent together, those of a pipeline, or one alone: they wait for all of their values. */
class Batch {
  isSent = false;
  readonly #values: Promise<void>[] = [];
  #ready: Promise<void> | undefined;

  add(ready: Promise<void> | undefined): void {
    if (ready !== undefined) {
      this.#values.push(ready);
    }
  }

  /** Fulfilled when all values are in their commands, if that takes a while; asked when none is added any more. */
  get ready(): Promise<void> | undefined {
    if (this.#values.length > 0) {
      this.#ready ??= Promise.all(this.#values).then(() => undefined);
    }
    return this.#ready;
  }
}

/** The commands of one client. */
class Commands {
  /** Commands since MULTI, where they are sent one by one. */
  #queued: Command[] | undefined;

  constructor(private readonly compressor: Compressor) {}

  /**
   * Encodes the values of a command, and sees to its reply, once.
   *
   * Throws CommandRefusedError.
   *
   * @param isPiped Whether it is sent by a pipeline, which knows its own transactions.
   * @param budget Of all replies to its pipeline.
   * @param batch What it is sent with.
   */
  prepare(command: Command, isPiped: boolean, budget?: Budget, batch = new Batch()): void {
    if (command[TREATMENT] !== undefined) {
      return;
    }
    const treatment = this.compressor.request(command.name, command.args, 0);
    command[TREATMENT] = treatment ?? null;
    command[BATCH] = batch;
    batch.add(treatment?.ready);
    if (treatment !== undefined) {
      // The library has looked for Buffers before.
      command.bufferMode ||= treatment.ready !== undefined || command.args.some((arg) => Buffer.isBuffer(arg));
      this.#restoreReply(command, treatment.shape, budget);
    }
    if (!isPiped) {
      this.#follow(command);
    }
  }

  /** Forgets a transaction that has ended with its connection. */
  forget(): void {
    this.#queued = undefined;
  }

  #restoreReply(command: Command, shape: Shape | undefined, budget: Budget | undefined): void {
    if (shape !== undefined) {
      const sent = { name: command.name, args: command.args, from: 0 };
      transform(command, (reply) =>
        this.compressor.restore(shape, reply, isText(command), sent, budget ?? this.compressor.budget()),
      );
    }
  }

  /** Follows a transaction whose commands are sent one by one: EXEC's reply has the replies to all of them. */
  #follow(command: Command): void {
    const name = command.name.toLowerCase();
    if (name === "multi") {
      this.#queued = [];
    } else if (this.#queued !== undefined) {
      const queued = this.#queued;
      if (name === "exec") {
        transform(command, (reply) => this.#restoreAll(queued, reply, isText(command)));
      } else if (name !== "discard") {
        queued.push(command);
        return;
      }
      this.#queued = undefined;
    }
  }

  #restoreAll(queued: readonly Command[], reply: unknown, asText: boolean): unknown {
    if (!Array.isArray(reply) || reply.length !== queued.length) {
      return reply;
    }
    const budget = this.compressor.budget();
    const restored = queued.map(({ name, args, [TREATMENT]: treatment }, at) => {
      const part: unknown = reply[at];
      const { shape } = treatment ?? {};
      const sent = { name, args, from: 0 };
      return shape === undefined
        ? part
        : orError(() => this.compressor.restore(shape, part, asText, sent, budget));
    });
    return restored.some((part) => part instanceof Promise) ? Promise.all(restored) : restored;
  }
}

/** Returns the error in the place of what cannot be read, as the library does with those of the server. */
function orError(restore: () => unknown): unknown {
  try {
    const restored = restore();
    return restored instanceof Promise ? restored.catch((error: unknown) => error) : restored;
  } catch (error) {
    return error;
  }
}

/** Puts a step in front of what makes the result of a reply. */
function transform(command: Command, restore: (reply: unknown) => unknown): void {
  const { transformReply } = command;
  command.transformReply = (reply) => {
    const restored = restore(reply);
    if (!(restored instanceof Promise)) {
      return transformReply.call(command, restored);
    }
    const result = restored.then((value) => transformReply.call(command, value));
    // In the results of EXEC nobody waits for it at once.
    result.catch(() => undefined);
    return result;
  };
}

/** Waits for values in the results of a pipeline with EXEC; what cannot be read is an error in its place. */
async function settled(results: unknown): Promise<unknown> {
  for (const [, value] of results as [unknown, unknown][]) {
    if (Array.isArray(value)) {
      for (let at = 0; at < value.length; at++) {
        if (value[at] instanceof Promise) {
          value[at] = await (value[at] as Promise<unknown>).catch((error: unknown) => error);
        }
      }
    }
  }
  return results;
}

function isText(command: Command): boolean {
  // The library turns Buffers into text of any other encoding.
  return command.replyEncoding === "utf8";
}

function isPipeline(made: unknown): made is Pipeline {
  return typeof made === "object" && made !== null && "addBatch" in made;
}

/** Returns whether a pipeline is the library's own, for commands that are awaited one by one. */
function isAutomatic(pipeline: object): boolean {
  return Object.getOwnPropertySymbols(pipeline).some((symbol) => symbol.description === AUTOMATIC);
}

function hasOptions(arg: unknown): boolean {
  return typeof arg === "object" && arg !== null && Object.keys(arg).length > 0;
}
