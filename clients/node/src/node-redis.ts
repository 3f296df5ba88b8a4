/**
 * Compression under node-redis: clients, pools, clusters and sentinels of the package redis, 5.0 to 6.3.
 *
 * Every command of a client is sent by one of three methods of it, whose arguments and results have stayed the same over
 * these versions: `sendCommand`, `_executePipeline` and `_executeMulti`. They are replaced on the object itself, which the
 * objects that `withTypeMapping` and its like return inherit from; a wrapper would have to know each of the 400 commands
 * and its types. The replies come from there before a command's `transformReply` and before the client-side cache. Pools,
 * clusters and sentinels send nothing themselves; their clients are compressed as they come. It must not know the bytes
 * of envelopes.
 *
 * Values are restored from Buffers, so that the library is asked for these; what else is in the reply is made text
 * again unless the caller has asked for Buffers, too.
 */

import type { Budget, Compressor } from "./compressor";
import type { Keeping } from "./dictionaries/manager";
import { NodeRedisKeeping } from "./dictionaries/node-redis";
import { UndecodableBatchError, UndecodableError } from "./errors";
import { OrderedSender } from "./ordered";
import type { Shape } from "./shapes";

/** Classes for the types of RESP, by their first byte. */
type TypeMapping = Readonly<Record<number, unknown>>;

interface CommandOptions {
  readonly typeMapping?: TypeMapping | undefined;
}

/** A command of a pipeline or a transaction. */
interface Queued {
  readonly args: Arguments;
  readonly transformReply?: ((reply: unknown, preserve: unknown, typeMapping?: TypeMapping) => unknown) | undefined;
}

type Arguments = readonly unknown[] & { readonly preserve?: unknown };

/** A client of one server: what of it is used here. */
interface Client {
  /** The object that all those inherit from that differ by their options. */
  readonly _self: Client;
  readonly _commandOptions?: CommandOptions | undefined;
  readonly sendCommand: (this: Client, args: Arguments, options?: CommandOptions) => Promise<unknown>;
  readonly _executePipeline: (this: Client, commands: readonly Queued[], ...rest: unknown[]) => Promise<unknown[]>;
  readonly _executeMulti: (this: Client, commands: readonly Queued[], ...rest: unknown[]) => Promise<unknown[]>;
  setDirtyWatch(message: string): void;
}

interface Node {
  client?: object | undefined;
}

/** Owner of clients that send for it: a pool, a cluster or a sentinel. */
interface Owner {
  readonly _self: object;
}

/** A client, pool, cluster or sentinel of node-redis. */
export type NodeRedisClient = Client | Owner;

/** A command, ready to be sent. */
interface Prepared {
  /** Its name in capitals. */
  readonly name: string;
  /** A copy of its arguments with encoded values, or the arguments. */
  readonly args: Arguments;
  readonly shape: Shape | undefined;
  readonly ready: Promise<void> | undefined;
}

/** Types that a caller wants replies to be made of. */
interface Wanted {
  /** Strings, not Buffers. */
  readonly text: boolean;
  /** Objects with this prototype, not Map or arrays, for the maps of RESP 3. */
  readonly objects: object | null | undefined;
}

/** Differences between versions of the library that no caller can see. */
interface Version {
  /** Prototype of the objects that it makes of maps. */
  readonly prototype: object | null;
  /** Returns the types that the reply to a command is to have. */
  readonly mappingOf: (client: Client, options: CommandOptions | undefined) => TypeMapping | undefined;
}

/** Restores the values in a reply, and makes of it what the caller wants. */
type Restore = (reply: unknown, wanted: Wanted) => Promise<unknown>;

type Method = (this: unknown, ...args: unknown[]) => unknown;

/** Makes what belongs to a client compress, if it does not yet. */
type Adopt = (client: object, hasOtherOptions: boolean) => void;

/** First bytes of strings, which values are, and of maps in RESP. */
const BLOB_STRING = 36;
const MAP = 37;
/** Clients that compress: a sentinel and its leases share theirs. */
const compressing = new WeakSet();
/** Commands that a cluster sends again by another client, by the array of arguments that it gives to both. */
const redirections = new WeakMap<Arguments, { command: Prepared; given: Arguments; by: Compressor }>();
/** Message of the library's WatchError for a transaction that the server has not run. */
const CHANGED = "One (or more) of the watched keys has been changed";

/** Returns whether this is a client, pool, cluster or sentinel of node-redis. */
export function isNodeRedis(client: object): client is NodeRedisClient {
  return "_self" in client && (isClient(client) || isPool(client) || isCluster(client) || isSentinel(client));
}

/**
 * Makes a client compress, or the clients of a pool, cluster or sentinel.
 *
 * @param adopt Makes another client compress that comes from this one. It may have other options.
 * @returns How its dictionaries are kept.
 */
export function compressNodeRedis(client: NodeRedisClient, compressor: Compressor, adopt: Adopt): Keeping {
  const self = client._self;
  compressing.add(self);
  const keeping = new NodeRedisKeeping(compressor.configuration.dictionaryDatabase);
  if (isClient(self)) {
    keeping.join(self);
    compressClient(self, compressor);
  } else {
    compressOwner(self, (member, hasOtherOptions) => {
      keeping.join((member as Owner)._self);
      adopt(member, hasOtherOptions);
    });
  }
  replace(self, ["close", "destroy", "quit", "QUIT", "disconnect"], (original) =>
    function (this: unknown, ...args) {
      keeping.end();
      return original.apply(this, args);
    },
  );
  replace(self, ["duplicate", "createPool"], (original) =>
    function (this: unknown, ...args) {
      const made = original.apply(this, args) as object;
      adopt(made, args.some((arg) => arg !== undefined));
      return made;
    },
  );
  return keeping;
}

/** Sees to it that each client of a pool, cluster or sentinel compresses before it sends anything. */
function compressOwner(self: object, adopt: Adopt): void {
  const adopted = <Member extends object>(member: Member): Member => {
    if (!compressing.has((member as unknown as Owner)._self)) {
      adopt(member, false);
    }
    return member;
  };
  // Each of these gets a client for its last argument.
  const withAdopted = (original: Method): Method =>
    function (this: unknown, ...args) {
      const use = args.pop() as (member: object, ...rest: unknown[]) => unknown;
      return original.call(this, ...args, (member: object, ...rest: unknown[]) => use(adopted(member), ...rest));
    };
  if (isCluster(self)) {
    followNodes(self.nodeByAddress, adopted);
  } else if (isPool(self)) {
    replace(self, ["execute"], withAdopted);
  } else {
    replace(self, ["_execute", "use"], withAdopted);
    replace(self, ["acquire"], (original) =>
      async function (this: unknown, ...args) {
        return adopted((await original.apply(this, args)) as object);
      },
    );
  }
}

/** Adopts the clients of a cluster's nodes, those that there are and those to come. */
function followNodes(nodes: Map<string, Node>, adopted: (client: object) => object): void {
  const follow = (node: Node): void => {
    let client = node.client && adopted(node.client);
    Object.defineProperty(node, "client", {
      configurable: true,
      enumerable: true,
      get: () => client,
      set: (created: object | undefined) => {
        client = created && adopted(created);
      },
    });
  };
  nodes.forEach(follow);
  nodes.set = (address, node) => {
    follow(node);
    return Map.prototype.set.call(nodes, address, node) as typeof nodes;
  };
}

function compressClient(self: Client, compressor: Compressor): void {
  const commands = new Commands(compressor);
  const { sendCommand, _executePipeline, _executeMulti } = self;
  const { mappingOf, prototype } = versionOf(sendCommand);

  Object.assign(self, {
    sendCommand(this: Client, args: Arguments, options?: CommandOptions): Promise<unknown> {
      return commands.send([args], ([command = untouched(args)]) => {
        const restore = commands.following(command);
        if (restore === undefined) {
          return sendCommand.call(this, command.args, options);
        }
        const mapping = mappingOf(this, options);
        return sendCommand
          .call(this, command.args, { ...withInherited(options), typeMapping: restorable(mapping) })
          .then((reply) => restore(reply, wantedBy(mapping, prototype)));
      });
    },

    _executePipeline(this: Client, queue: readonly Queued[], ...rest: unknown[]): Promise<unknown[]> {
      return commands.send(queue.map(argumentsOf), async (all) => {
        const encoded = withArguments(queue, all);
        if (!all.some(hasShape)) {
          return _executePipeline.call(this, encoded, ...rest);
        }
        const mapping = this._commandOptions?.typeMapping;
        const replies = await _executePipeline.call(withMapping(this, mapping), encoded, ...rest);
        return Promise.all(commands.restoreAll(all, replies, wantedBy(mapping, prototype)));
      });
    },

    _executeMulti(
      this: Client,
      queue: readonly Queued[],
      selectedDB?: unknown,
      ...rest: unknown[]
    ): Promise<unknown[]> {
      return commands.send(queue.map(argumentsOf), async (all) => {
        const encoded = withArguments(queue, all);
        if (!all.some(hasShape)) {
          return _executeMulti.call(this, encoded, selectedDB, ...rest);
        }
        const refused = refusedBy(_executeMulti, this);
        if (refused !== undefined) {
          return refused;
        }
        // The library would make text of EXEC's reply, but not in a pipeline.
        const whole = [{ args: ["MULTI"] }, ...encoded, { args: ["EXEC"] }];
        const replies = await _executePipeline.call(withMapping(this, undefined), whole, undefined, rest[0]);
        const last = replies.at(-1);
        if (!Array.isArray(last)) {
          self.setDirtyWatch(CHANGED);
          return _executeMulti.call(this, []);
        }
        if (selectedDB !== undefined) {
          // Sends nothing: the library only takes note of the database.
          await _executePipeline.call(this, [], selectedDB);
        }
        const outcomes = await Promise.allSettled(commands.restoreAll(all, last, wantedBy(undefined, prototype)));
        return results(outcomes, queue, this._commandOptions?.typeMapping);
      });
    },
  });

  replace(self, ["close", "QUIT", "quit"], (original) =>
    function (this: unknown, ...args) {
      return commands.send([], () => original.apply(this, args) as Promise<unknown>);
    },
  );
}

/** The commands of one client. */
class Commands {
  readonly #sender = new OrderedSender();
  /** Commands since MULTI, where they are sent one by one. */
  #queued: Prepared[] | undefined;

  constructor(private readonly compressor: Compressor) {}

  /** Sends commands with encoded values when it is their turn. Rejects with CommandRefusedError, and sends nothing. */
  async send<Reply>(
    given: readonly Arguments[],
    send: (prepared: readonly Prepared[]) => Promise<Reply>,
  ): Promise<Reply> {
    const prepared = given.map((args) => this.#prepared(args));
    const waits = prepared.flatMap(({ ready }) => ready ?? []);
    try {
      return await this.#inTurn(waits, () => send(prepared));
    } catch (error) {
      if (error instanceof Error && /^(MOVED|ASK) /.test(error.message)) {
        prepared.forEach((command, at) => {
          const args = given[at] ?? [];
          redirections.set(args, { command, given: args.slice(), by: this.compressor });
        });
      }
      throw error;
    }
  }

  /** Follows a command that is sent by itself, and returns what restores the reply, if that may have values. */
  following(command: Prepared): Restore | undefined {
    const queued = this.#queued;
    if (command.name === "MULTI") {
      this.#queued = [];
      return undefined;
    }
    if (command.name === "EXEC" || command.name === "DISCARD") {
      this.#queued = undefined;
      return queued?.some(hasShape) === true ? this.#transaction(queued) : undefined;
    }
    if (queued === undefined) {
      return command.shape && ((reply, wanted) => this.#restored(command, reply, wanted, this.compressor.budget()));
    }
    queued.push(command);
    return (reply, wanted) => {
      if (reply !== "QUEUED" && queued === this.#queued) {
        // A new connection knows of no transaction.
        this.#queued = undefined;
      }
      return this.#restored(command, reply, wanted, this.compressor.budget());
    };
  }

  /** Restores the replies to a pipeline or transaction. */
  restoreAll(commands: readonly Prepared[], replies: readonly unknown[], wanted: Wanted): Promise<unknown>[] {
    const budget = this.compressor.budget();
    return commands.map((command, at) => this.#restored(command, replies[at], wanted, budget));
  }

  #prepared(given: Arguments): Prepared {
    const redirected = redirections.get(given);
    if (redirected?.by === this.compressor && redirected.given.every((arg, at) => arg === given[at])) {
      return redirected.command;
    }
    const name = String(given[0]);
    const args = given.slice();
    const treatment = this.compressor.request(name, args, 1);
    return treatment === undefined ? untouched(given) : { ...treatment, name: name.toUpperCase(), args };
  }

  #inTurn<Reply>(waits: readonly Promise<void>[], send: () => Promise<Reply>): Promise<Reply> {
    const ready = waits.length === 0 ? undefined : Promise.all(waits).then(() => undefined);
    return new Promise((resolve) => {
      this.#sender.pass(ready, () => {
        resolve(send());
      });
    });
  }

  async #restored({ name, args, shape }: Prepared, reply: unknown, wanted: Wanted, budget: Budget): Promise<unknown> {
    const sent = { name, args: args as unknown[], from: 1 };
    const restored = shape && this.compressor.restore(shape, reply, wanted.text, sent, budget);
    return finished(shape === undefined ? reply : await restored, wanted);
  }

  #transaction(queued: readonly Prepared[]): Restore {
    return async (reply, wanted) => {
      if (!Array.isArray(reply) || reply.length !== queued.length) {
        return reply;
      }
      return (await Promise.allSettled(this.restoreAll(queued, reply, wanted))).map(valueOrError);
    };
  }
}

/** Returns a command that compression leaves alone. */
function untouched(args: Arguments): Prepared {
  return { name: String(args[0]).toUpperCase(), args, shape: undefined, ready: undefined };
}

/** Finds the version by where `sendCommand` looks for options: its own, those of the first client, or of this one. */
function versionOf(sendCommand: Client["sendCommand"]): Version {
  const source = Function.prototype.toString.call(sendCommand);
  if (source.includes("...this._commandOptions")) {
    return {
      prototype: Object.prototype,
      mappingOf: (client, options) => ({ ...client._commandOptions, ...options }).typeMapping,
    };
  }
  return source.includes("_self._commandOptions")
    ? {
        prototype: null,
        mappingOf: ({ _self: self }, options) => ({ ...self._commandOptions, ...options }).typeMapping,
      }
    : { prototype: null, mappingOf: (_, options) => options?.typeMapping };
}

/** Returns the types that values can be restored from; a Map, unlike an object, can have any key. */
function restorable(mapping: TypeMapping | undefined): TypeMapping {
  return { ...mapping, [BLOB_STRING]: Buffer, [MAP]: mapping?.[MAP] ?? Map };
}

function wantedBy(mapping: TypeMapping | undefined, prototype: object | null): Wanted {
  const isObject = mapping?.[MAP] !== Map && mapping?.[MAP] !== Array;
  return { text: mapping?.[BLOB_STRING] !== Buffer, objects: isObject ? prototype : undefined };
}

/** Makes text of Buffers and objects of Maps, as the library would have. */
function finished(part: unknown, wanted: Wanted): unknown {
  if (Buffer.isBuffer(part)) {
    return wanted.text ? part.toString() : part;
  }
  if (Array.isArray(part)) {
    for (let at = 0; at < part.length; at++) {
      part[at] = finished(part[at], wanted);
    }
  } else if (part instanceof Map) {
    return finishedMap(part as Map<PropertyKey, unknown>, wanted);
  } else if (part instanceof Set) {
    return new Set([...part].map((element) => finished(element, wanted)));
  }
  return part;
}

function finishedMap(map: Map<PropertyKey, unknown>, wanted: Wanted): unknown {
  for (const [key, value] of map) {
    map.set(key, finished(value, wanted));
  }
  if (wanted.objects === undefined) {
    return map;
  }
  const made = Object.create(wanted.objects) as Record<PropertyKey, unknown>;
  for (const [key, value] of map) {
    // The library assigns, too, which makes a difference for a field named __proto__.
    made[key] = value;
  }
  return made;
}

/** Returns options with those that they inherit, as they do before 5.8. */
function withInherited(options: CommandOptions | undefined): CommandOptions {
  const all: Record<string, unknown> = {};
  for (const name in options) {
    all[name] = options[name as keyof CommandOptions];
  }
  return all;
}

/** Returns a client like this one whose replies values can be restored from. */
function withMapping(client: Client, mapping: TypeMapping | undefined): Client {
  return Object.create(client, { _commandOptions: { value: { typeMapping: restorable(mapping) } } }) as Client;
}

/**
 * Returns the rejection of a transaction that the library would not send, because its connection is closed, or is not the
 * one that watched its keys. It forgets them in either case, and then asks for the options, where it is stopped.
 */
function refusedBy(executeMulti: Client["_executeMulti"], client: Client): Promise<unknown[]> | undefined {
  const check = { isPassed: false };
  const outcome = executeMulti.call(
    Object.create(client, {
      _commandOptions: {
        get: () => {
          check.isPassed = true;
          throw new Error("not sent");
        },
      },
    }) as Client,
    [],
  );
  if (!check.isPassed) {
    return outcome;
  }
  outcome.catch(() => undefined);
  return undefined;
}

/** Returns what a transaction returns. Throws UndecodableBatchError if a value in it cannot be read. */
function results(
  outcomes: readonly PromiseSettledResult<unknown>[],
  queue: readonly Queued[],
  mapping: TypeMapping | undefined,
): unknown[] {
  const replies = outcomes.map(valueOrError);
  const unread = replies.find((reply) => reply instanceof UndecodableError);
  if (unread === undefined) {
    return replies;
  }
  throw new UndecodableBatchError(
    unread,
    queue.map(({ args, transformReply }, at) => {
      const reply = replies[at];
      return reply instanceof Error || transformReply === undefined
        ? reply
        : transformReply(reply, args.preserve, mapping);
    }),
  );
}

function valueOrError(outcome: PromiseSettledResult<unknown>): unknown {
  return outcome.status === "fulfilled" ? outcome.value : outcome.reason;
}

function argumentsOf({ args }: Queued): Arguments {
  return args;
}

function withArguments(queue: readonly Queued[], commands: readonly Prepared[]): Queued[] {
  return queue.map((queued, at) => ({ ...queued, args: commands[at]?.args ?? queued.args }));
}

function hasShape({ shape }: Prepared): boolean {
  return shape !== undefined;
}

/** Replaces those of the methods that there are. */
function replace(target: object, names: readonly string[], replacement: (original: Method) => Method): void {
  const methods = target as Record<string, Method | undefined>;
  for (const name of names) {
    const original = methods[name];
    if (original !== undefined) {
      methods[name] = replacement(original);
    }
  }
}

function isClient(client: object): client is Client {
  return has(client, "_executeCommand", "sendCommand", "_executePipeline", "_executeMulti");
}

function isPool(client: object): boolean {
  return has(client, "execute") && "totalClients" in client;
}

function isCluster(client: object): client is Owner & { readonly nodeByAddress: Map<string, Node> } {
  return has(client, "nodeClient") && "nodeByAddress" in client && client.nodeByAddress instanceof Map;
}

/** Returns whether this is a sentinel or a lease of one. */
function isSentinel(client: object): boolean {
  return has(client, "_execute", "sendCommand");
}

function has(client: object, ...methods: string[]): boolean {
  return methods.every((name) => typeof (client as Record<string, unknown>)[name] === "function");
}
