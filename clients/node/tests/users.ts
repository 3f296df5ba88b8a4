/** Values of one kind, of which dictionaries can be made. */

/** Returns a user's record as JSON, of about 90 bytes. */
export function user(number: number): string {
  return JSON.stringify({ id: number, name: `user number ${number}`, roles: ["reader", "writer"], active: true });
}

/** Enough of them to learn from. */
export const USERS: readonly string[] = Array.from({ length: 2000 }, (_, number) => user(number));

/** The same as samples for training. */
export const SAMPLES: readonly Buffer[] = USERS.map((each) => Buffer.from(each));
