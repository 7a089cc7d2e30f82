// Unpacks the browser of @sparticuz/chromium into TMPDIR and prints its path.
// The package looks for its modules beside itself: run this with the folder of node_modules as argument.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.argv[2]}/package.json`);
const { default: chromium } = await import(pathToFileURL(require.resolve("@sparticuz/chromium")).href);
console.log(await chromium.executablePath());
