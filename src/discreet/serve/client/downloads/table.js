// What files share: the layout of a whole cube, names of columns, and everything that readers are told.

import { ABSENT } from "../cube.js";
import { symbols, TableLayout } from "../layout.js";
import { casefold, sorted } from "../strings.js";

/** @typedef {import("../cube.js").Cube} Cube */
/** @typedef {import("../cube.js").CubeEntry} CubeEntry */
/**
 * What readers are told of a table beside its figures; parts that are empty are left out.
 * @typedef {{title: string, name: string, source: string, licence: string, contact: string, edition: string,
 *   updated: string, address: string, citation: string, notes: string[], footnotes: string[], language: string}} About
 */
/**
 * How a cube is written.
 * @typedef {{labels: string | null, columns: string[], measure: string, separator: string, time: string,
 *   about: About}} Options
 */

export const MEANINGS = /** @type {Record<string, string>} */ ({
  ":c": "confidential",
  ":z": "cannot occur",
  ":": "not available",
});
export const STATUS_NAMES = ["published", "suppressed", "structural zero", "below threshold", "decimal"];

/** What the figures are called. @param {Cube} cube @param {Options} options */
export const measure_of = (cube, options) => options.measure || cube.unit;

/** The places of the cells that the release contains. @param {Cube} cube */
export function present(cube) {
  return [...cube.status.keys()].filter((k) => cube.status[k] !== ABSENT);
}

/** The symbols that stand in place of figures. @param {Cube} cube */
export const used_symbols = (cube) => sorted(new Set(symbols(cube.values, cube.status).filter(Boolean)));

/**
 * The whole cube with the variables of the options, or its last one, in columns.
 * Where the last one has more than `most` entries, that with the fewest is in columns.
 * @param {Cube} cube @param {Options} options @param {number} [most]
 */
export function layout_of_file(cube, options, most) {
  let columns = options.columns.length ? options.columns : cube.names.slice(1).slice(-1);
  const last = cube.axes[cube.axes.length - 1];
  if (most !== undefined && !options.columns.length && columns.length && last.length > most) {
    columns = [cube.axes.reduce((least, axis) => (axis.length < least.length ? axis : least)).name];
  }
  const rows = cube.names.filter((name) => !columns.includes(name));
  return TableLayout.of(cube.reorder([...rows, ...columns]), rows.length);
}

/** A column name that is not taken, in any case of letters. @param {string} wish @param {Iterable<string>} taken */
export function fresh_name(wish, taken) {
  const folded = new Set([...taken].map(casefold));
  while (folded.has(casefold(wish))) wish += "_";
  return wish;
}

/** How an entry is headed. @param {CubeEntry} entry @param {string} labels */
export function heading(entry, labels) {
  if (labels === "both" && entry.shows_code) return `${entry.code} ${entry.label}`;
  return labels === "codes" ? entry.code : entry.label;
}

/**
 * Everything that is known of the table, as pairs of a heading and a text.
 * @param {Cube} cube @param {About} about @returns {[string, string][]}
 */
export function said(cube, about) {
  const named = /** @type {[string, string[]][]} */ ([
    ["Title", [about.title]],
    ["Source", [about.source]],
    ["Edition", [about.edition]],
    ["Updated", [about.updated]],
    ["Licence", [about.licence]],
    ["Contact", [about.contact]],
    ["Address", [about.address]],
    ["Citation", [about.citation]],
    ["Note", plain_notes(cube, about)],
    ["Footnote", about.footnotes],
    ["Statement", [cube.statement.text]],
  ]);
  return named.flatMap(
    ([head, texts]) => texts.filter(Boolean).map((text) => /** @type {[string, string]} */ ([head, text])),
  );
}

/** The notes, or what the statement says in plain words. @param {Cube} cube @param {About} about */
export function plain_notes(cube, about) {
  if (about.notes.length) return about.notes;
  return cube.statement.plain ? [cube.statement.plain] : [];
}

/** @param {string} text */
export const utf8 = (text) => new TextEncoder().encode(text);
