// PX (PC-Axis): keywords that describe the table, then its figures row by row (`release/formats/px.py`).

import { symbols } from "../layout.js";
import { decimals_of, format_fixed } from "../numbers.js";
import { words } from "../strings.js";
import { layout_of_file, MEANINGS, measure_of, plain_notes, used_symbols, utf8 } from "./table.js";

/** @typedef {import("./table.js").Cube} Cube */
/** @typedef {import("./table.js").Options} Options */
/** @typedef {import("../layout.js").TableLayout} TableLayout */
/** @typedef {import("../cube.js").CubeEntry} CubeEntry */

const DATA = /** @type {Record<string, string>} */ ({ ":z": ".", ":c": "..", ":": "..." });
const LONGEST_NAME = 20; // of a matrix, by the description of the format
const MOST_DECIMALS = 6;
const SCALES = /** @type {const} */ ([
  ["A1", /^\d{4}$/],
  ["Q1", /^\d{4}-?[QK][1-4]$/],
  ["M1", /^\d{4}(M|-)\d{2}$/],
  ["W1", /^\d{4}-?[WU]\d{2}$/],
  ["H1", /^\d{4}-?[HS][12]$/],
]);

/** @param {Cube} cube @param {Options} options */
export function write_px(cube, options) {
  const table = layout_of_file(cube, options);
  const signs = symbols(table.values, table.status);
  const decimals = decimals_of(table.values.filter((_, k) => !signs[k]), table.is_integer, MOST_DECIMALS);
  const lines = [...head(options, decimals), ...told(table, cube, options), ...data(table, signs, decimals)];
  return utf8(`${lines.join("\n")}\n`);
}

/** @param {Options} options @param {number} decimals */
function head({ about }, decimals) {
  const name = about.name.replace(/[^A-Za-z0-9_-]+/g, "_").slice(0, LONGEST_NAME) || "table";
  const lines = [
    keyword("CHARSET", ["ANSI"]),
    keyword("AXIS-VERSION", ["2013"]),
    keyword("CODEPAGE", ["utf-8"]),
    keyword("LANGUAGE", [about.language]),
    `DECIMALS=${decimals};`,
    `SHOWDECIMALS=${decimals};`,
    keyword("MATRIX", [name]),
    "COPYRIGHT=NO;",
    keyword("SUBJECT-CODE", [name]),
  ];
  return about.updated ? [...lines, keyword("LAST-UPDATED", [`${about.updated.replaceAll("-", "")} 00:00`])] : lines;
}

/** @param {TableLayout} table @param {Cube} cube @param {Options} options */
function told(table, cube, options) {
  const { about } = options;
  const measure = measure_of(cube, options);
  const sides = /** @type {const} */ ([["STUB", table.row_axes], ["HEADING", table.column_axes]]);
  const others = /** @type {const} */ ([["SOURCE", about.source], ["CONTACT", about.contact]]);
  const note = notes(cube, options).filter(Boolean).join("#"); // a hash is a line break in notes
  return [
    keyword("SUBJECT-AREA", [about.source || about.name]),
    keyword("CONTENTS", [measure]),
    keyword("UNITS", [measure]),
    keyword("TITLE", [about.title || measure]),
    ...sides.flatMap(([name, axes]) => (axes.length ? [keyword(name, axes.map((axis) => axis.label))] : [])),
    ...variables(table, options.time),
    ...others.flatMap(([name, text]) => (text ? [keyword(name, [text])] : [])),
    ...Object.entries(DATA).map(([sign, dots]) => keyword(`DATASYMBOL${dots.length}`, [sign])),
    ...(note ? [keyword("NOTEX", [note])] : []),
  ];
}

/** @param {Cube} cube @param {Options} options */
function notes(cube, { about }) {
  const used = used_symbols(cube).map((sign) => `${sign}: ${MEANINGS[sign]}.`);
  const edition = about.edition && `Edition ${about.edition}`;
  const found = [edition, ...plain_notes(cube, about), ...about.footnotes, ...used, about.citation, about.licence];
  const statement = cube.statement.text;
  return found.includes(statement) ? found : [...found, statement];
}

/** @param {TableLayout} table @param {string} time */
function variables(table, time) {
  const axes = [...table.row_axes, ...table.column_axes];
  const periods = axes.filter((axis) => axis.name === time && time_scale(axis.codes)).map((axis) => {
    // PX writes periods as digits alone.
    const listed = axis.codes.map((code) => `"${code.replace(/[^0-9]/g, "")}"`).join(",");
    return `TIMEVAL("${px_text(axis.label)}")=TLIST(${time_scale(axis.codes)}),${listed};`;
  });
  const codes = axes.flatMap((axis) => [
    keyword("VARIABLECODE", [axis.name], axis.label),
    keyword("CODES", axis.codes, axis.label),
    ...(axis.total === null ? [] : [keyword("ELIMINATION", [distinct(axis.entries)[axis.total]], axis.label)]),
  ]);
  return [...axes.map((axis) => keyword("VALUES", distinct(axis.entries), axis.label)), ...periods, ...codes];
}

/** The scale of periods: years, half-years, quarters, months or weeks. @param {string[]} periods */
function time_scale(periods) {
  return SCALES.find(([, pattern]) => periods.every((period) => pattern.test(period)))?.[0] ?? "";
}

/** @param {TableLayout} table @param {string[]} signs @param {number} decimals */
function data(table, signs, decimals) {
  const write = (/** @type {number} */ value) =>
    (decimals ? format_fixed(value, decimals) : String(Math.trunc(value) + 0));
  const cells = signs.map((sign, k) => (sign ? `"${DATA[sign]}"` : write(table.values[k])));
  const width = table.columns.length;
  const lines = Array.from(
    { length: Math.ceil(cells.length / width) },
    (_, k) => cells.slice(k * width, (k + 1) * width).join(" "),
  );
  return ["DATA=", ...lines, ";"];
}

/**
 * A keyword with its quoted texts, for one variable where it is named.
 * @param {string} name @param {string[]} texts @param {string} [of]
 */
function keyword(name, texts, of = "") {
  const about = of ? `("${px_text(of)}")` : "";
  return `${name}${about}=${texts.map((text) => `"${px_text(text)}"`).join(",")};`;
}

/** A text as PX can hold it: one line, without quotation marks. @param {string} text */
const px_text = (text) => words(text.replaceAll('"', "'")).join(" ");

/** Labels, with the code behind those that several categories have. @param {CubeEntry[]} entries */
function distinct(entries) {
  const labels = entries.map((entry) => px_text(entry.label));
  const count = (/** @type {string} */ label) => labels.filter((other) => other === label).length;
  return labels.map((label, k) => (count(label) === 1 ? label : `${label} (${px_text(entries[k].code)})`));
}
