// Connects to a server with the clients for Node.js as they come, and prints one line of JSON for each check.
//
//     node main.js HOST PORT PORT-WITH-PASSWORD
//
// ../README.md says what every such program takes, prints and checks.

import process from "node:process";
import { ioredis, iovalkey } from "./ioredis.js";
import { nodeRedis } from "./node-redis.js";
import { checks, Run } from "./scenario.js";

const WRONG_USAGE = 2;

const [host, port, lockedPort] = process.argv.slice(2);
if (lockedPort === undefined) {
  console.error("usage: main.js HOST PORT PORT-WITH-PASSWORD");
  process.exit(WRONG_USAGE);
}
const addresses = { open: { host, port: Number(port) }, locked: { host, port: Number(lockedPort) } };

/** The run that is going on: what is said on the console, and Node.js's own warnings, are complaints of its library. */
let run;
console.error = (...words) => run.complain(words.join(" "));
console.warn = console.error;
process.on("warning", (warning) => run.complain(warning));

let failed = false;
for (const library of [ioredis, iovalkey, nodeRedis]) {
  for (const protocol of library.protocols) {
    run = new Run(library, protocol, addresses);
    await makeChecks();
    await run.close();
  }
}
process.exit(failed ? 1 : 0);

async function makeChecks() {
  for (const [check, make] of Object.entries(checks)) {
    const detail = await make(run).then(
      () => "",
      (error) => error.message,
    );
    const ok = detail === "";
    failed ||= !ok;
    const line = { client: run.library.name, protocol: run.protocol, check, ok, detail };
    console.log(JSON.stringify(line));
  }
}
