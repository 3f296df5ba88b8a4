/** The package as applications load it: ES modules, CommonJS, types, worker threads, and without the addon. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";

import { Codec, encode } from "../src";
import { valkey } from "./servers";

/** Folder of the package. */
const PACKAGE = join(__dirname, "..", "..");
const ROUND_TRIP = `
const cache = compress(new Redis(Number(process.argv[2])));
await cache.set("page", "<p>hello</p>".repeat(100));
const page = await cache.get("page");
await cache.quit();
console.log(page.length, statistics(cache).encoded_values_zstd);`;

describe("the package", () => {
  const application = mkdtempSync(join(tmpdir(), "snugly-node-"));
  let port: string;

  function run(file: string, program: string, ...options: string[]): string {
    writeFileSync(join(application, file), program);
    const args = [...options, file, port];
    return execFileSync(process.execPath, args, { cwd: application, encoding: "utf8", timeout: 60_000 }).trim();
  }

  before(async () => {
    port = String((await valkey()).port);
    mkdirSync(join(application, "node_modules"));
    for (const name of ["ioredis", "redis", "@types", "typescript"]) {
      symlinkSync(join(PACKAGE, "node_modules", name), join(application, "node_modules", name));
    }
    symlinkSync(PACKAGE, join(application, "node_modules", "snugly"));
  });

  after(() => {
    rmSync(application, { recursive: true });
  });

  it("is imported by ES modules", () => {
    const program = `import { Redis } from "ioredis";\nimport { compress, statistics } from "snugly";${ROUND_TRIP}`;
    assert.equal(run("module.mjs", program), "1200 1");
  });

  it("is required by CommonJS", () => {
    const program = `
      const Redis = require("ioredis");
      const { compress, statistics } = require("snugly");
      void (async () => {${ROUND_TRIP}})();`;
    assert.equal(run("module.cjs", program), "1200 1");
  });

  it("keeps the types of clients", () => {
    const program = `
      import { Cluster, Redis } from "ioredis";
      import { createClient, RESP_TYPES } from "redis";
      import { compress, type CompressionOptions, UndecodableError } from "snugly";
      import { compression } from "snugly/keyv";

      const options: CompressionOptions = { backend: "lz4", valueTypes: ["strings", "hashes"] };
      const cache: Redis = compress(new Redis(), options);
      const value: Promise<string | null> = cache.get("key");
      const bytes: Promise<Buffer | null> = cache.getBuffer("key");
      const cluster: Cluster = compress(new Cluster([]));
      const client = compress(createClient());
      const text: Promise<string | null> = client.get("key");
      const mapped: Promise<Buffer | null> = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }).get("key");
      // @ts-expect-error -- there is no such backend
      compress(new Redis(), { backend: "gzip" });
      // @ts-expect-error -- a number is no client
      compress(7);
      export { bytes, cluster, compression, mapped, text, UndecodableError, value };`;
    writeFileSync(join(application, "types.mts"), program);
    const compiler = join(PACKAGE, "node_modules", "typescript", "bin", "tsc");
    const flags = "--noEmit --strict --skipLibCheck --module node16 --target es2022 --types node types.mts".split(" ");
    const { stdout, status } = spawnSync(process.execPath, [compiler, ...flags], { cwd: application, encoding: "utf8" });
    assert.deepEqual([stdout, status], ["", 0]);
  });

  it("works in worker threads and the main thread at once", () => {
    const program = `
      import { isMainThread, Worker, workerData } from "node:worker_threads";
      import { Redis } from "ioredis";
      import { compress } from "snugly";

      const port = isMainThread ? Number(process.argv[2]) : workerData.port;
      const name = isMainThread ? "main" : workerData.name;
      const workers = isMainThread
        ? ["one", "two"].map((name) => new Worker(new URL(import.meta.url), { workerData: { port, name } }))
        : [];
      const ended = workers.map((worker) => new Promise((resolve) => worker.on("exit", resolve)));
      const cache = compress(new Redis(port), { workerPoolFrom: 5000 });
      for (let turn = 0; turn < 300; turn++) {
        const value = \`\${name} \${turn} \`.repeat(100 + turn * 2);
        await cache.set(name, value);
        if ((await cache.get(name)) !== value) throw new Error(name);
      }
      await cache.quit();
      if (isMainThread) console.log(...(await Promise.all(ended)));`;
    assert.equal(run("threads.mjs", program), "0 0");
  });

  it("lets a process end once its clients are closed, also if they keep dictionaries", () => {
    const program = `
      import { Redis } from "ioredis";
      import { createClient } from "redis";
      import { compress } from "snugly";

      const port = Number(process.argv[2]);
      compress(new Redis(port, { lazyConnect: true }), { dictionary: "auto" });
      const cache = compress(new Redis(port), { dictionary: "auto" });
      await cache.set("key", "some text ".repeat(20));
      const client = compress(createClient({ socket: { port } }), { dictionary: "catalogue" });
      await client.connect();
      await client.set("key", "some text ".repeat(20));
      await Promise.all([cache.quit(), client.close()]);
      console.log("done");`;
    assert.equal(run("ends.mjs", program), "done");
  });

  it("reads lz4 and plain values without the addon, writes plain ones, and says why", () => {
    const bare = mkdtempSync(join(tmpdir(), "snugly-node-"));
    mkdirSync(join(bare, "node_modules", "snugly"), { recursive: true });
    cpSync(join(PACKAGE, "dist"), join(bare, "node_modules", "snugly", "dist"), { recursive: true });
    cpSync(join(PACKAGE, "package.json"), join(bare, "node_modules", "snugly", "package.json"));
    symlinkSync(join(PACKAGE, "node_modules", "ioredis"), join(bare, "node_modules", "ioredis"));
    const text = "some text ".repeat(50);
    const lz4 = new Codec({ backend: "lz4" }).encode(text).toString("hex");
    const program = `
      import { Redis } from "ioredis";
      import { compress, decode, UndecodableError } from "snugly";

      const warnings = [];
      const cache = compress(new Redis(Number(process.argv[2])), { onWarning: (text) => warnings.push(text) });
      const bare = new Redis(Number(process.argv[2]));
      await bare.set("lz4", Buffer.from("${lz4}", "hex"));
      await bare.set("zstd", Buffer.from("${encode(text).toString("hex")}", "hex"));
      await cache.set("plain", "plain text ".repeat(50));
      const failure = await cache.get("zstd").catch((error) => error);
      const refused = await cache.strlen("lz4").catch((error) => error);
      console.log(JSON.stringify([
        await cache.get("lz4"), (await bare.get("plain")).length, failure instanceof UndecodableError, failure.kind,
        refused.name, warnings.length, /nothing is compressed: the addon for .* cannot be loaded/.test(warnings[0]),
      ]));
      await Promise.all([cache.quit(), bare.quit()]);`;
    writeFileSync(join(bare, "module.mjs"), program);
    const printed = execFileSync(process.execPath, ["module.mjs", port], { cwd: bare, encoding: "utf8", timeout: 60_000 });
    rmSync(bare, { recursive: true });
    const expected = [text, 550, true, "addon_missing", "CommandRefusedError", 1, true];
    assert.deepEqual(JSON.parse(printed), expected);
  });
});
