// A JSON-stat 2.0 data set; figures that are not shown are null and have a status (`release/formats/json.py`).

import { parents } from "../cube.js";
import { symbols } from "../layout.js";
import { repr_float } from "../numbers.js";
import { sorted } from "../strings.js";
import { MEANINGS, measure_of, plain_notes, utf8 } from "./table.js";

/** @typedef {import("./table.js").Cube} Cube */
/** @typedef {import("./table.js").Options} Options */
/** @typedef {import("../statement.js").Statement} Statement */

/** JSON that is written already: numbers keep their kind, 1.0 beside 1. */
class Written {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/** Plain data as compact JSON. @param {any} value @returns {string} */
function json(value) {
  if (value instanceof Written) return value.text;
  if (Array.isArray(value)) return `[${value.map(json).join(",")}]`;
  const pairs = value instanceof Map ? [...value] : value && typeof value === "object" ? Object.entries(value) : null;
  if (!pairs) return JSON.stringify(value);
  return `{${pairs.map(([key, one]) => `${JSON.stringify(key)}:${json(one)}`).join(",")}}`;
}

/** JSON without the spaces that Python sets behind signs. @param {string} text */
const compact = (text) => new Written(text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, (_, inside) => inside ?? ""));

/** @param {Cube} cube @param {Options} options */
export const write_json_stat = (cube, options) => utf8(json(dataset(cube, options)));

/** The cube as a JSON-stat data set. @param {Cube} cube @param {Options} options */
function dataset(cube, options) {
  const { about } = options;
  const signs = symbols(cube.values, cube.status);
  const status = new Map(signs.flatMap((sign, k) => (sign ? [[String(k), sign]] : [])));
  const told = { label: about.title, source: about.source, updated: about.updated };
  const notes = [...plain_notes(cube, about), ...about.footnotes];
  const write = (/** @type {number} */ value) => new Written(cube.is_integer ? String(value) : repr_float(value));
  return new Map(/** @type {[string, any][]} */ ([
    ["version", "2.0"],
    ["class", "dataset"],
    ...filled(Object.entries(told)),
    ...(notes.length ? [["note", notes]] : []),
    ["id", cube.names],
    ["size", cube.shape],
    ...(cube.names.includes(options.time) ? [["role", { time: [options.time] }]] : []),
    ["dimension", new Map(cube.axes.map((axis) => [axis.name, dimension(axis)]))],
    ["value", signs.map((sign, k) => (sign ? null : write(cube.values[k])))],
    ...(status.size ? [["status", status]] : []),
    ["extension", extension(cube, options, signs)],
  ]));
}

/** @param {[string, string][]} pairs */
const filled = (pairs) => pairs.filter(([, text]) => text);

/** @param {Cube} cube @param {Options} options @param {string[]} signs */
function extension(cube, options, signs) {
  const { name, edition, licence, contact, citation, address } = options.about;
  const used = sorted(new Set(signs.filter(Boolean)));
  return new Map(/** @type {[string, any][]} */ ([
    ["measure", measure_of(cube, options)],
    ["unit", cube.unit],
    ...filled(Object.entries({ name, edition, licence, contact, citation, address })),
    ["status", new Map(used.map((sign) => [sign, MEANINGS[sign]]))],
    ["statement", statement_json(cube.statement)],
  ]));
}

/** @param {Statement} statement */
function statement_json(statement) {
  const steps = statement.steps.map((step) => ({
    name: step.name,
    parameters: compact(step.parameters_json),
    sentences: step.sentences.map(({ kind, about, text, plain }) => ({ kind, about, text, plain })),
  }));
  const privacy = compact(statement.privacy_json);
  return { text: statement.text, plain: statement.plain, steps, privacy, version: statement.version };
}

/** A variable as a dimension; what stands under a category is its child. @param {import("../cube.js").CubeAxis} axis */
function dimension(axis) {
  /** @type {Map<string, string[]>} */
  const children = new Map();
  parents(axis.entries, true).forEach((above, k) => {
    if (above === null) return;
    const { code } = axis.entries[above];
    children.set(code, [...(children.get(code) ?? []), axis.codes[k]]);
  });
  const category = new Map(/** @type {[string, any][]} */ ([
    ["index", new Map(axis.codes.map((code, k) => [code, k]))],
    ["label", new Map(axis.entries.map((entry) => [entry.code, entry.label]))],
    ...(children.size ? [["child", children]] : []),
  ]));
  return { label: axis.label, category };
}
