/** Reports once with the options on standard input; prints the ledger's entry, or the error. */

import fs from "node:fs";

import { report } from "./device.mjs";

report(JSON.parse(fs.readFileSync(0, "utf8"))).then(
  (entry) => console.log(JSON.stringify(entry)),
  (error) => console.log(JSON.stringify({ error: error.message })),
);
