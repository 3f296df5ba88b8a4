/**
 * Training and decisions of one client from the values that it writes, and publication of its dictionaries
 * (spec/dictionaries.md).
 *
 * It knows the rules of publishing. Samples, training and decisions are in the addon.
 */

import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import type { Compressor } from "../compressor";
import type { Learner, Lesson, Manager } from "../native";
import { ReplyFailure, type DictionaryConnection, type Outcome, type Words } from "./connection";
import { now } from "./steps";

/** Time between two looks for something to train from, in seconds. */
const PAUSE = 0.25;
/** Rest for each second of work: it takes a quarter of a processor at most. */
const REST = 3;
/** Bounds on the expiry of the lock, in seconds; in between it is the refresh. */
const LEAST_LOCK = 2;
const LONGEST_LOCK = 60;
/** Time to wait for a replica, in milliseconds. */
const WAIT = 500;
/** Attempts to change a document that others change, too, until the next round. */
const ATTEMPTS = 10;

/** Keys of dictionaries. */
export interface Keys {
  readonly catalogue: Buffer;
  readonly lock: Buffer;
  dictionary(id: number): Buffer;
}

/** Permission is missing. */
class Denied extends Error {}

/** Training and decisions of one client. */
export class Learning {
  readonly #unpublished = new Map<string, Lesson>();
  #publishAt = 0;
  #studied = 0;
  #isDenied = false;
  #hasWarned = false;

  constructor(
    private readonly compressor: Compressor,
    private readonly learner: Learner,
    private readonly manager: Manager,
    private readonly keys: Keys,
    private readonly warn: (message: string) => void,
  ) {}

  /** Forgets all of it: the values are gone. */
  forget(): void {
    this.#unpublished.clear();
    this.learner.forget();
  }

  /** Learns if there is something to be learned, and returns how long there is nothing to do, in seconds. */
  async look(connection: DictionaryConnection): Promise<number> {
    const { configuration } = this.compressor;
    let took = 0;
    const shown = this.learner.shown();
    if (shown !== this.#studied) {
      const [started] = now();
      const lesson = await this.learner.step(Date.now() / 1000, this.compressor.reads());
      took = now()[0] - started;
      if (lesson === null) {
        this.#studied = shown;
      } else if (configuration.trains && lesson.dictionary !== null) {
        this.#unpublished.set(lesson.pattern, lesson);
      }
    }
    const isDue = now()[0] >= this.#publishAt;
    if (this.#isDenied && this.#unpublished.size === 0 && isDue) {
      this.#allow();
    }
    if (this.#unpublished.size > 0 && isDue && !this.manager.wasOff()) {
      this.#publishAt = now()[0] + this.manager.interval;
      await this.#publish(connection);
    }
    return Math.max(PAUSE, REST * took);
  }

  #allow(): void {
    this.#isDenied = false;
    this.learner.allowTraining(this.compressor.configuration.trains);
  }

  async #publish(connection: DictionaryConnection): Promise<void> {
    try {
      await connection.alone(this.keys.catalogue, (alone) => this.#publishAll(new Sender(alone)));
      if (this.#isDenied) {
        this.#allow();
      }
    } catch (error) {
      if (error instanceof Denied) {
        // With what there is it is asked again.
        this.#publishAt = now()[0] + this.compressor.configuration.dictionaryRefresh;
        if (!this.#isDenied) {
          this.#isDenied = true;
          this.learner.allowTraining(false);
        }
        this.warn(`no dictionaries are trained, since they may not be published: ${error.message}`);
      } else if (error instanceof Refused) {
        // Another round comes. That there is no connection is for others to tell.
        this.warn(`dictionaries are not published yet: ${error.message}`);
      }
    }
  }

  async #publishAll(sender: Sender): Promise<void> {
    await this.#lookAtPolicy(sender);
    const token = Buffer.from(randomBytes(16).toString("hex"));
    const refresh = this.compressor.configuration.dictionaryRefresh;
    const expiry = Math.round(1000 * Math.min(Math.max(refresh, LEAST_LOCK), LONGEST_LOCK));
    if ((await sender.send("SET", this.keys.lock, token, "NX", "PX", String(expiry))) === null) {
      return;
    }
    try {
      for (const lesson of [...this.#unpublished.values()]) {
        // Meanwhile all of it may have been forgotten.
        if (this.#unpublished.get(lesson.pattern) === lesson) {
          await this.#publishOne(lesson, sender);
        }
      }
    } finally {
      // A failure of the work itself is the one to report; the lock expires.
      await released(sender, this.keys.lock, token).catch(() => undefined);
    }
  }

  async #publishOne(lesson: Lesson, sender: Sender): Promise<void> {
    const { dictionary } = lesson;
    if (dictionary === null) {
      return;
    }
    const document = await sender.get(this.keys.catalogue);
    const other = lesson.activeIn(document);
    // One that nobody has any more is as good as none.
    const isLost = other !== null && !isSomething(await sender.send("TOUCH", this.keys.dictionary(other)));
    const lost = isLost ? other : null;
    // A dictionary that nobody is told of would stay for ever.
    if (this.#added(lesson, document, 0, lost) === null) {
      return;
    }
    const key = this.keys.dictionary(dictionary.id);
    const isWritten = (await sender.send("SET", key, dictionary.bytes, "NX")) !== null;
    if (!isWritten && (await sender.get(key))?.equals(dictionary.bytes) !== true) {
      this.#unpublished.delete(lesson.pattern);
      this.warn(`a dictionary is not published, since there is something else at ${key.toString()}`);
      return;
    }
    // A replica that is not there or late is one more reason for readers to try again, which they do.
    await sender.send("WAIT", "1", String(WAIT)).catch(() => undefined);
    const publishedAt = await serverTime(sender);
    const isListed = await changed(sender, this.keys.catalogue, (current) => {
      const added = this.#added(lesson, current, publishedAt, lost);
      return added === null ? undefined : ["SET", this.keys.catalogue, added];
    });
    if (isListed) {
      this.#unpublished.delete(lesson.pattern);
      this.manager.hasPublished(dictionary, ...now());
      this.compressor.values.codec.count("published");
      return;
    }
    await changed(sender, this.keys.catalogue, (current) => (lesson.isListedIn(current) ? undefined : ["DEL", key]));
  }

  /** Returns the catalogue with what was learned; null if that is not to be published after all. */
  #added(lesson: Lesson, document: Buffer | null, publishedAt: number, lost: number | null): Buffer | null {
    if (document === null && this.manager.isKnown()) {
      this.manager.lose();
      this.forget();
      return null;
    }
    const trainedAt = new Date().toISOString().replace(/\.\d+Z$/, "Z");
    try {
      const added = lesson.addedTo(document, trainedAt, publishedAt, lost);
      if (added === null) {
        this.#unpublished.delete(lesson.pattern);
      }
      return added;
    } catch (error) {
      // Another round comes, and perhaps another catalogue.
      const why = error instanceof Error ? error.message : String(error);
      this.warn(`a dictionary for ${JSON.stringify(lesson.pattern)} is not published: ${why}`);
      return null;
    }
  }

  /** Warns once where dictionaries may be evicted. */
  async #lookAtPolicy(sender: Sender): Promise<void> {
    if (this.#hasWarned) {
      return;
    }
    this.#hasWarned = true;
    const memory = await sender.send("INFO", "memory").catch(() => null);
    const policy = /^maxmemory_policy:(allkeys-\S*)/m.exec(String(memory))?.[1];
    if (policy !== undefined) {
      this.warn(
        `maxmemory-policy is ${policy}, so the server may evict dictionaries while no client is there that has them, ` +
          "and values cannot be read then: prefer one of volatile-*",
      );
    }
  }
}

/** An error that the server answered. */
class Refused extends Error {}

/** Sends commands one by one. */
class Sender {
  constructor(private readonly connection: DictionaryConnection) {}

  /** Rejects with Denied or Refused for an error reply, and with another error where there is no connection. */
  async send(...words: Words): Promise<Exclude<Outcome, ReplyFailure>> {
    const [outcome = null] = await this.connection.send([words]);
    if (outcome instanceof ReplyFailure) {
      throw outcome.isDenied ? new Denied(outcome.reason) : new Refused(outcome.reason);
    }
    return outcome;
  }

  async get(key: Buffer): Promise<Buffer | null> {
    const value = await this.send("GET", key);
    return Buffer.isBuffer(value) ? value : null;
  }
}

/**
 * Changes what is at a key by the command that follows from it.
 *
 * It is asked again if somebody else changes it meanwhile.
 *
 * @returns Whether there was a command that was run.
 */
async function changed(
  sender: Sender,
  key: Buffer,
  command: (current: Buffer | null) => Words | undefined,
): Promise<boolean> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    await sender.send("WATCH", key);
    const change = command(await sender.get(key));
    if (change === undefined) {
      await sender.send("UNWATCH");
      return false;
    }
    await sender.send("MULTI");
    try {
      await sender.send(...change);
    } catch (error) {
      await sender.send("DISCARD");
      throw error;
    }
    if ((await sender.send("EXEC")) !== null) {
      return true;
    }
    // Others are at it.
    await sleep(Math.random() * 10);
  }
  return false;
}

/** Releases a lock if it is held with this token. */
function released(sender: Sender, lock: Buffer, token: Buffer): Promise<boolean> {
  return changed(sender, lock, (holder) => (holder?.equals(token) === true ? ["DEL", lock] : undefined));
}

/** Returns seconds since 1970 by the server's clock, or by our own if it may not be asked. */
async function serverTime(sender: Sender): Promise<number> {
  const time = await sender.send("TIME").catch(() => null);
  const seconds = Array.isArray(time) ? Number(time[0]) : NaN;
  return Number.isFinite(seconds) ? seconds : Math.floor(Date.now() / 1000);
}

function isSomething(reply: unknown): boolean {
  return reply !== null && Number(reply) !== 0;
}
