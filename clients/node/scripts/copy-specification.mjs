// Puts the command table beside what is compiled, for where the addon is not there.

import { copyFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(dirname(fileURLToPath(import.meta.url)));
const [folder = "dist"] = process.argv.slice(2);
copyFileSync(join(here, "..", "..", "spec", "commands.json"), join(here, folder, "commands.json"));
