/**
 * The manager of one client's dictionaries: it fetches those that readers wait for, and refreshes what is in use.
 *
 * It knows timers. What is asked is up to the addon, and how it gets to the server to a connection.
 */

import type { Compressor, DictionarySource } from "../compressor";
import type { Addon, Dictionary, Manager } from "../native";
import type { DictionaryAccess, DictionaryConnection } from "./connection";
import { Learning } from "./learning";
import { carriedOut, Copies, now, type Listener } from "./steps";

/** Means of a library of clients to keep the dictionaries of one client. */
export interface Keeping {
  readonly access: DictionaryAccess;
  /** Tells a manager of the client's reconnections and its end. */
  follow(manager: Pick<DictionaryManager, "hurry" | "stop">): void;
}

/** Keeps a client's dictionaries, from the first use of one to the end of the client. */
export class DictionaryManager implements DictionarySource, Listener {
  readonly #manager: Manager;
  readonly #learning: Learning | undefined;
  readonly #copies: Copies | undefined;
  readonly #connection: DictionaryConnection;
  /** Dictionaries that are looked for, and those that wait for the next look. */
  readonly #fetching = new Map<number, Promise<Dictionary | undefined>>();
  #wanted: number[] = [];
  #look: Promise<Map<number, Dictionary>> | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** The round that is at work. */
  #round: Promise<void> | undefined;
  #isRunning = false;

  constructor(
    private readonly compressor: Compressor,
    addon: Addon,
    access: DictionaryAccess,
  ) {
    const {
      configuration,
      values: { dictionaries, learner },
    } = compressor;
    if (dictionaries === undefined) {
      throw new TypeError("dictionaries need the addon");
    }
    const prefix = configuration.dictionaryPrefix;
    const folder = configuration.dictionaryFolder;
    this.#manager = new addon.Manager(
      {
        prefix,
        refresh: configuration.dictionaryRefresh,
        waits: configuration.dictionary !== undefined,
        hasCopies: folder !== undefined,
        readTimeout: access.readTimeout,
      },
      dictionaries,
    );
    const warn = (message: string): void => {
      this.#warnOnce(message);
    };
    this.#copies = folder === undefined ? undefined : new Copies(folder, warn);
    const keys = {
      ...addon.dictionaryKeys(prefix),
      dictionary: (id: number) => addon.dictionaryKey(prefix, id),
    };
    this.#learning =
      learner === undefined ? undefined : new Learning(compressor, learner, this.#manager, keys, warn);
    this.#connection = access.connect(keys.catalogue);
  }

  /** Starts its rounds, unless they are under way. */
  start(): void {
    if (!this.#isRunning) {
      this.#isRunning = true;
      this.#begin();
    }
  }

  /** Looks soon, and at everything: a connection was lost, and the server may have lost more. */
  hurry(): void {
    if (this.#isRunning) {
      this.#manager.hurry();
      if (this.#timer !== undefined) {
        clearTimeout(this.#timer);
        this.#begin();
      }
    }
  }

  /** Ends its rounds after a last look: others read what this client has written. A later use starts them again. */
  async stop(): Promise<void> {
    if (this.#isRunning) {
      this.#isRunning = false;
      clearTimeout(this.#timer);
      this.#timer = undefined;
      await this.#round;
      if (this.compressor.values.dictionaries?.areWrittenWith() === true) {
        await this.#carriedOut(this.#manager.keep());
      }
    }
    // Meanwhile somebody may have begun again.
    if (!this.#isStarted()) {
      this.#connection.close();
    }
  }

  #isStarted(): boolean {
    return this.#isRunning;
  }

  isMissing(id: number): boolean {
    return this.#manager.isMissing(id, now()[0]);
  }

  whyMissing(): string {
    const { dictionaryPrefix } = this.compressor.configuration;
    return this.#manager.isOff(now()[0]) ? `: the keys ${dictionaryPrefix}:* may not be read` : "";
  }

  /** Looks for dictionaries together with all that are missed in the same turn of the loop, each once for all waiters. */
  fetch(id: number): Promise<Dictionary | undefined> {
    const held = this.compressor.values.dictionaries?.get(id) ?? undefined;
    if (held !== undefined) {
      return Promise.resolve(held);
    }
    let fetching = this.#fetching.get(id);
    if (fetching === undefined) {
      this.start();
      this.#wanted.push(id);
      this.#look ??= new Promise((resolve) => setImmediate(resolve)).then(() => this.#found());
      fetching = this.#look.then((found) => found.get(id)).finally(() => this.#fetching.delete(id));
      this.#fetching.set(id, fetching);
    }
    return fetching;
  }

  note(kind: string, text: string): void {
    if (kind === "warning") {
      this.compressor.configuration.onWarning(text);
    } else if (kind === "catalogue_lost") {
      this.#learning?.forget();
    } else {
      this.compressor.values.codec.count(kind);
    }
  }

  async #found(): Promise<Map<number, Dictionary>> {
    const wanted = this.#wanted;
    this.#wanted = [];
    this.#look = undefined;
    const { found = [] } = await this.#carriedOut(this.#manager.fetch(wanted));
    return new Map(found.map((dictionary) => [dictionary.id, dictionary]));
  }

  #begin(): void {
    this.#timer = undefined;
    this.#round = this.#lookAround()
      .catch((error: unknown) => {
        const why = error instanceof Error ? error.message : String(error);
        this.#warnOnce(`dictionaries could not be maintained; it is tried again: ${why}`);
        return this.#manager.interval;
      })
      .then((pause) => {
        if (this.#isRunning) {
          this.#timer = setTimeout(() => {
            this.#begin();
          }, pause * 1000);
          // The client keeps the process alive as long as it is open.
          this.#timer.unref();
        }
      });
  }

  /** Does the work that is due, and returns the time until more is due, in seconds. */
  async #lookAround(): Promise<number> {
    const { pause = this.#manager.interval } = await this.#carriedOut(this.#manager.refresh());
    if (this.#learning === undefined || !this.#isRunning) {
      return pause;
    }
    const [began] = now();
    const learned = await this.#learning.look(this.#connection);
    return Math.max(Math.min(learned, pause - (now()[0] - began)), 0);
  }

  #carriedOut(task: Parameters<typeof carriedOut>[0]): ReturnType<typeof carriedOut> {
    return carriedOut(task, this.#connection, this.#copies, this);
  }

  #warnOnce(message: string): void {
    if (this.#manager.isNewWarning(message)) {
      this.compressor.configuration.onWarning(message);
    }
  }
}
