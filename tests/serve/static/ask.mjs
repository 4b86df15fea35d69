// The client's own modules on a folder of files, without a browser: `node ask.mjs OUT` reads
// addresses, one line of JSON each, and answers with pages and figures.

import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const out = resolve(process.argv[2]);
const told = JSON.parse(await readFile(`${out}/site.json`, "utf8"));
const { modules } = await import(pathToFileURL(`${out}/${told.client[0]}`));
const [{ Folder }, { Site }, { page, answer_of, chart_alone }, { templates }, describe, { formats }, { Refusal }] = [
  "load", "site", "pages", "templates", "describe", "downloads/index", "refusals",
].map((name) => modules[`${name}.js`]);
const folder = new Folder((path) => readFile(`${out}/${path}`).then((bytes) => new Uint8Array(bytes)));
const today = () => new Date(process.argv[3] ?? Date.now());
const site = new Site(await folder.json(told.site), folder, templates, { ending: "", today });

/** A page as the server would answer it, with the figures behind it. */
async function asked({ path, search, lang }) {
  const { status, search: address, html, answer } = await page(site, path, search, lang);
  const figures = answer && { values: [...answer.cube.values].map((v) => (Number.isNaN(v) ? null : v)), status: [...answer.cube.status], notes: answer.notes };
  return { status, search: address, html, figures };
}

/** A file of a table, as base64. */
async function made({ path, search, lang, ending }) {
  const answer = await answer_of(site, path.split("/")[1], search, lang);
  const texts = await site.texts(lang);
  if (ending === ".svg") return { file: btoa(unescape(encodeURIComponent(String(chart_alone(site, answer, texts)?.svg ?? "")))) };
  const options = new describe.TableDescriber(site, texts).options(answer, describe.file_name(answer, ending), null);
  const content = await formats.find((one) => one.ending === ending).write(describe.file_cube(answer), options);
  return { file: Buffer.from(content).toString("base64"), name: options.file };
}

for await (const line of createInterface({ input: process.stdin })) {
  const question = JSON.parse(line);
  const answer = await (question.ending ? made(question) : asked(question)).catch((error) => ({
    error: error instanceof Refusal ? error.code : String(error.stack),
  }));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
