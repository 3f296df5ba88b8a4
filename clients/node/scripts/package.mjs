// Makes what is published, in packages/: the package, and one with the addon for this machine's platform, which npm installs
// only where it fits. Then both are installed into an empty application and tried: npm run package
//
// The addon is the one that `npm run addon` has put beside package.json.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Platforms that there are addons for, as they are named there, and the parts of the names. */
const PLATFORMS = ["linux-x64-gnu", "linux-x64-musl", "linux-arm64-gnu", "linux-arm64-musl", "darwin-x64", "darwin-arm64"];
const LIBC = { gnu: "glibc", musl: "musl" };

const here = dirname(dirname(fileURLToPath(import.meta.url)));
const out = join(here, "packages");
const { PLATFORM } = await import(join(here, "dist", "platform.js"));
const own = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));

/** Runs npm in a folder, and returns what it prints. */
function npm(folder, ...args) {
  return execFileSync("npm", ["--silent", ...args], { cwd: folder, encoding: "utf8" }).trim();
}

/** Writes a package, packs it, and returns the path of the archive. */
function packed(name, manifest, files) {
  const folder = join(out, name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  for (const file of [...files, "LICENSE"]) {
    execFileSync("cp", ["-R", join(here, file), folder]);
  }
  return join(out, npm(folder, "pack", "--pack-destination", out));
}

function addonPackage() {
  const [os, cpu, libc] = PLATFORM.split("-");
  const file = `snugly.${PLATFORM}.node`;
  const { version, license, engines } = own;
  const fits = { os: [os], cpu: [cpu], ...(libc && { libc: [LIBC[libc]] }) };
  const manifest = {
    name: `@snugly/${PLATFORM}`,
    version,
    description: `The addon of snugly for ${PLATFORM}`,
    license,
    engines,
    main: file,
    files: [file],
    ...fits,
  };
  return packed(PLATFORM, manifest, [file]);
}

function mainPackage() {
  const addons = Object.fromEntries(PLATFORMS.map((platform) => [`@snugly/${platform}`, own.version]));
  const manifest = { ...own, scripts: undefined, devDependencies: undefined, optionalDependencies: addons };
  return packed("snugly", manifest, ["dist", "README.md"]);
}

/** Installs the archives into an application, whose values come back smaller than they were. */
function tried(...archives) {
  const folder = mkdtempSync(join(tmpdir(), "snugly-node-"));
  try {
    writeFileSync(join(folder, "package.json"), "{}");
    npm(folder, "install", "--omit=optional", "--ignore-scripts", "--no-package-lock", ...archives);
    const program = `
      const { decode, encode } = require("snugly");
      const stored = encode("a value that repeats itself, ".repeat(100));
      if (stored.length > 200 || decode(stored).length !== 2900) throw new Error("it does not compress");`;
    execFileSync(process.execPath, ["-e", program], { cwd: folder, stdio: "inherit" });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

rmSync(out, { recursive: true, force: true });
const archives = [mainPackage(), addonPackage()];
tried(...archives);
process.stdout.write(`${archives.join("\n")}\n`);
