// Draws a template with the client's own runtime: `node render.mjs FOLDER FILE`, values on stdin.

import { pathToFileURL } from "node:url";

const [, , folder, file] = process.argv;
const { Renderer } = await import(pathToFileURL(`${folder}/runtime.js`));
const { templates } = await import(pathToFileURL(`${folder}/templates.js`));
let text = "";
for await (const part of process.stdin) text += part;
const revived = (value) => (Array.isArray(value?.map) ? new Map(value.map.map(([k, v]) => [k, revived(v)])) : Array.isArray(value) ? value.map(revived) : value);
const given = Object.fromEntries(Object.entries(JSON.parse(text)).map(([name, value]) => [name, revived(value)]));
process.stdout.write(new Renderer(templates).render(file, given));
