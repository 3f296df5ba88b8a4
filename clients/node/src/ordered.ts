/** Keeps the order of commands where some of them have to wait for their values. */

interface Waiting {
  readonly ready: Promise<void> | undefined;
  readonly send: () => void;
}

/** The commands of one client on their way to it. */
export class OrderedSender {
  #waiting: Waiting[] | undefined;

  /**
   * Sends now if nothing has to be waited for, and otherwise after everything before and when it is ready.
   *
   * @param ready Fulfilled when it may be sent; it is never rejected.
   */
  pass(ready: Promise<void> | undefined, send: () => void): void {
    if (this.#waiting !== undefined) {
      this.#waiting.push({ ready, send });
    } else if (ready === undefined) {
      send();
    } else {
      this.#waiting = [{ ready, send }];
      void this.#drain(this.#waiting);
    }
  }

  async #drain(waiting: Waiting[]): Promise<void> {
    let awaited: Promise<void> | undefined;
    // Commands that come meanwhile are appended.
    for (const { ready, send } of waiting) {
      // Commands that wait for the same are sent at once, and nothing happens between them.
      if (ready !== undefined && ready !== awaited) {
        await ready;
        awaited = ready;
      }
      send();
    }
    this.#waiting = undefined;
  }
}
