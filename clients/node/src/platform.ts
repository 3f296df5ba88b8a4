/** Names of platforms, as in the packages that have the addon. */

import { existsSync, readdirSync } from "node:fs";

/** This machine's platform, such as `linux-x64-gnu`. */
export const PLATFORM = platform();

function platform(): string {
  const name = `${process.platform}-${process.arch}`;
  if (process.platform !== "linux") {
    return name;
  }
  const libraries = existsSync("/lib") ? readdirSync("/lib") : [];
  return `${name}-${libraries.some((library) => library.startsWith("ld-musl-")) ? "musl" : "gnu"}`;
}
