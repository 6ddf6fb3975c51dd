// Prints the results of web/static/lib/numbers.js for the cases on standard input, as JSON.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const numbers = await import(pathToFileURL(process.argv[2]).href);
const cases = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(cases.map(([name, values]) => numbers[name](...values))));
