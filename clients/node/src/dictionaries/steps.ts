/**
 * The steps of the tasks about dictionaries, carried out: commands, waits, and copies in a folder.
 *
 * The rules are in the addon, which asks for each step and is told what came of it. This knows no client.
 */

import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import type { Dictionary, Step, Steps } from "../native";
import { ReplyFailure, type DictionaryConnection } from "./connection";

/** Receives what happens on the way. */
export interface Listener {
  /** @param kind `warning`, `fetched`, `put_back`, `mended` or `catalogue_lost`. */
  note(kind: string, text: string): void;
}

/** Returns the time of a clock that never goes back and of the wall clock, in seconds. */
export function now(): [monotonic: number, wall: number] {
  return [performance.now() / 1000, Date.now() / 1000];
}

/**
 * Carries out a task to its end.
 *
 * @returns Its last step, which has the outcome.
 */
export async function carriedOut(
  task: Steps,
  connection: DictionaryConnection,
  copies: Copies | undefined,
  listener: Listener,
): Promise<Step> {
  let step = task.start(...now());
  for (;;) {
    for (const { kind, text } of step.events) {
      listener.note(kind, text);
    }
    if (step.commands !== undefined) {
      step = await sent(task, step.commands, connection);
    } else if (step.sleep !== undefined) {
      await sleep(step.sleep * 1000);
      step = task.done(...now());
    } else if (step.readCopies !== undefined) {
      step = task.copies((await copies?.read(step.readCopies)) ?? [], ...now());
    } else if (step.writeCopies !== undefined) {
      await copies?.write(step.writeCopies);
      step = task.done(...now());
    } else if (step.removeCopies !== undefined) {
      await copies?.remove(step.removeCopies);
      step = task.done(...now());
    } else {
      return step;
    }
  }
}

async function sent(task: Steps, commands: Buffer[][], connection: DictionaryConnection): Promise<Step> {
  let outcomes;
  try {
    outcomes = await connection.send(commands);
  } catch (error) {
    return task.lost(error instanceof Error ? error.message : String(error), ...now());
  }
  const replies = outcomes.map((outcome) =>
    outcome instanceof ReplyFailure ? { isDenied: outcome.isDenied, reason: outcome.reason } : outcome,
  );
  return task.replies(replies, ...now());
}

/** Copies of dictionaries in a folder, where a client finds them when the server has none. */
export class Copies {
  constructor(
    private readonly folder: string,
    private readonly warn: (message: string) => void,
  ) {}

  async read(ids: readonly number[]): Promise<{ id: number; place: string; bytes: Buffer }[]> {
    const copies = ids.map(async (id) => {
      const place = this.#path(id);
      const bytes = await readFile(place).catch(() => undefined);
      return bytes === undefined ? [] : [{ id, place, bytes }];
    });
    return (await Promise.all(copies)).flat();
  }

  async write(dictionaries: readonly Dictionary[]): Promise<void> {
    for (const { id, bytes } of dictionaries) {
      const path = this.#path(id);
      const draft = `${path}.${process.pid}`;
      try {
        await mkdir(this.folder, { recursive: true });
        await writeFile(draft, bytes);
        await rename(draft, path);
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        this.warn(`copies of dictionaries cannot be kept in ${this.folder}: ${why}`);
        await rm(draft, { force: true }).catch(() => undefined);
      }
    }
  }

  async remove(ids: readonly number[]): Promise<void> {
    await Promise.all(ids.map((id) => rm(this.#path(id), { force: true }).catch(() => undefined)));
  }

  #path(id: number): string {
    return join(this.folder, `${id}.zdict`);
  }
}
