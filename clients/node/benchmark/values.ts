/** Values that are measured: generated, the same in each run. */

/** Kind of values. */
export interface Kind {
  readonly name: string;
  /** Returns value number i. */
  readonly make: (number: number) => Buffer;
}

/** Values of each kind that are written and read in turn. */
export const COUNT = 500;

const WORDS =
  "account active address archive balance branch budget carrier category channel client comment company contract country currency customer delivery deposit discount district document element employee endpoint example feature invoice journal language location manager message network number order package payment period picture platform position price product profile project provider quantity reason receipt record refund region report request resource response revision schedule section segment service session setting shipment status storage street summary supplier support target ticket transfer update vehicle version warehouse website".split(
    " ",
  );

/** Records of JSON, by their lengths. */
export const KINDS: readonly Kind[] = [
  { name: "100 B", make: (number) => json(number, 100) },
  { name: "1.4 KiB", make: (number) => json(number, 1434) },
  { name: "4,000 B", make: (number) => json(number, 4000) },
];

/** A record with names that repeat in each value, and words and numbers that do not. */
function json(number: number, length: number): Buffer {
  const random = generator(number * 7919 + length);
  const word = (): string => WORDS[Math.floor(random() * WORDS.length)] ?? "";
  let text = `{"id":${number},"kind":"${word()}","createdAt":"2026-03-${String((number % 28) + 1).padStart(2, "0")}T08:00:00Z","items":[`;
  while (text.length < length - 2) {
    const price = (random() * 1000).toFixed(2);
    text += `{"name":"${word()} ${word()}","quantity":${Math.floor(random() * 100)},"price":${price},"code":"${random().toString(36).slice(2, 10)}"},`;
  }
  return Buffer.from(`${text.slice(0, length - 2)}]}`);
}

/** Mulberry32: numbers from 0 to 1 that follow from a seed. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
