/**
 * Values in replies: where the command table says that they are (spec/commands.md).
 *
 * It knows replies as clients have them before they make text of them: Buffers, arrays, and maps as Map or as objects.
 * It must not know what a value is encoded with.
 */

/** Shape of a reply with values. */
export type Shape =
  | { readonly kind: "value" }
  /** Of EXEC: its elements have the shapes of their own commands. */
  | { readonly kind: "transaction" }
  | { readonly kind: "each"; readonly inner: Shape; readonly hasArgumentsKeys: boolean }
  | { readonly kind: "element"; readonly inner: Shape; readonly at: number; readonly hasKey: boolean }
  | { readonly kind: "pairs"; readonly inner: Shape; readonly hasKey: boolean };

/** Key of a value: its number among the keys of the arguments, or the key itself if the reply has it. */
export type KeyOfValue = number | Buffer | string;

/** Returns what takes the place of a value, or a promise of it. */
export type Visit = (value: Buffer, key: KeyOfValue) => unknown;

/** Waits for replacements. */
type Pending = Promise<void>[];

/**
 * Replaces each value in a reply, from left to right, by what `visit` returns. A part that does not have the shape
 * stays.
 *
 * @returns The reply, whose arrays and maps are the same ones, or a promise of it if a replacement is one.
 */
export function replaced(shape: Shape, reply: unknown, visit: Visit): unknown {
  if (shape.kind === "value") {
    return Buffer.isBuffer(reply) ? visit(reply, 0) : reply;
  }
  const pending: Pending = [];
  const whole = { reply };
  apply(shape, reply, 0, visit, pending, (part) => {
    whole.reply = part;
  });
  return pending.length === 0 ? whole.reply : Promise.all(pending).then(() => whole.reply);
}

function apply(
  shape: Shape,
  part: unknown,
  key: KeyOfValue,
  visit: Visit,
  pending: Pending,
  put: (part: unknown) => void,
): void {
  switch (shape.kind) {
    case "value":
      if (Buffer.isBuffer(part)) {
        settle(visit(part, key), pending, put);
      }
      return;
    case "transaction":
      return;
    case "each":
      if (!Array.isArray(part)) {
        apply(shape.inner, part, key, visit, pending, put);
        return;
      }
      for (let at = 0; at < part.length; at++) {
        element(shape.inner, part, at, shape.hasArgumentsKeys ? at : key, visit, pending);
      }
      return;
    case "element":
      if (Array.isArray(part) && shape.at < part.length) {
        element(shape.inner, part, shape.at, named(shape.hasKey, part[0], key), visit, pending);
      }
      return;
    case "pairs":
      pairs(shape.inner, shape.hasKey, part, key, visit, pending);
  }
}

/** Applies a shape to one element of an array. */
function element(
  shape: Shape,
  array: unknown[],
  at: number,
  key: KeyOfValue,
  visit: Visit,
  pending: Pending,
): void {
  apply(shape, array[at], key, visit, pending, (part) => {
    array[at] = part;
  });
}

/** Pairs are a map, an array of arrays of two (if its first element is an array), or an array that alternates. */
function pairs(
  shape: Shape,
  hasKey: boolean,
  part: unknown,
  key: KeyOfValue,
  visit: Visit,
  pending: Pending,
): void {
  if (part instanceof Map) {
    for (const [first, second] of part) {
      apply(shape, second, named(hasKey, first, key), visit, pending, (value) => part.set(first, value));
    }
  } else if (!Array.isArray(part)) {
    if (isRecord(part)) {
      for (const first of Object.keys(part)) {
        apply(shape, part[first], named(hasKey, first, key), visit, pending, (value) => {
          part[first] = value;
        });
      }
    }
  } else if (Array.isArray(part[0])) {
    for (const pair of part) {
      if (Array.isArray(pair) && pair.length === 2) {
        element(shape, pair, 1, named(hasKey, pair[0], key), visit, pending);
      }
    }
  } else {
    for (let at = 1; at < part.length; at += 2) {
      element(shape, part, at, named(hasKey, part[at - 1], key), visit, pending);
    }
  }
}

function named(hasKey: boolean, first: unknown, key: KeyOfValue): KeyOfValue {
  return hasKey && (Buffer.isBuffer(first) || typeof first === "string") ? first : key;
}

function isRecord(part: unknown): part is Record<string, unknown> {
  return typeof part === "object" && part !== null && !Buffer.isBuffer(part) && !(part instanceof Error);
}

function settle(replacement: unknown, pending: Pending, put: (part: unknown) => void): void {
  if (replacement instanceof Promise) {
    pending.push(replacement.then(put));
  } else {
    put(replacement);
  }
}
