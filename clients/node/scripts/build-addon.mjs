// Builds the addon with cargo and puts it beside package.json: npm run addon [-- --debug]
//
// SNUGLY_ADDON names a library that is built already.

import { execFileSync } from "node:child_process";
import { copyFileSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const LIBRARIES = { darwin: "libsnugly_node.dylib", win32: "snugly_node.dll" };

const here = dirname(dirname(fileURLToPath(import.meta.url)));
const addon = join(here, "addon");
const { PLATFORM } = await import(join(here, "dist", "platform.js"));

function built() {
  const profile = process.argv.includes("--debug") ? [] : ["--release"];
  const cargo = ["build", "--locked", ...profile, "--package", "snugly-node", "--message-format=json"];
  const messages = execFileSync("cargo", cargo, {
    cwd: addon,
    encoding: "utf8",
    maxBuffer: 1 << 28,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const artifacts = messages.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
  const library = artifacts.find((each) => each.reason === "compiler-artifact" && each.target.name === "snugly_node");
  const name = LIBRARIES[process.platform] ?? "libsnugly_node.so";
  return library.filenames.find((file) => file.endsWith(name));
}

// A process may have the file before, which must not change under it.
const file = join(here, `snugly.${PLATFORM}.node`);
copyFileSync(process.env.SNUGLY_ADDON ?? built(), `${file}.new`);
renameSync(`${file}.new`, file);
