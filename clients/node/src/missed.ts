/** Warnings of values that cannot be read and that count as absent: nobody sees their errors otherwise. */

/** Least time between two warnings of one client, in milliseconds: a whole cache may be unreadable. */
const PAUSE = 60_000;

/** The warnings of one client or codec. */
export class MissLog {
  #quietUntil = -Infinity;
  #untold = 0;

  constructor(
    private readonly warn: (message: string) => void,
    private readonly clock: () => number = () => performance.now(),
  ) {}

  /** Warns of an error, or counts it for the next warning. */
  tell(error: Error): void {
    const now = this.clock();
    if (now < this.#quietUntil) {
      this.#untold += 1;
      return;
    }
    const others =
      this.#untold > 0 ? ` (${this.#untold} more since the last of these warnings)` : "";
    this.#untold = 0;
    this.#quietUntil = now + PAUSE;
    this.warn(`a value counts as absent: ${error.message}${others}`);
  }
}
