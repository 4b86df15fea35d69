// CSV: a line of names, then a row for each cell; nothing in it runs as a formula (`release/formats/csv.py`).

import { symbols } from "../layout.js";
import { shortest_digits } from "../numbers.js";
import { fresh_name, measure_of, present, STATUS_NAMES, utf8 } from "./table.js";

/** @typedef {import("./table.js").Cube} Cube */
/** @typedef {import("./table.js").Options} Options */

const FORMULA = /^[=+\-@\t\r\n]/;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

/** A text that a spreadsheet does not run. @param {string} text */
const inert = (text) => (FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text);

/** @param {string} text */
const quoted = (text) => `"${inert(text).replaceAll('"', '""')}"`;

/** @param {Cube} cube @param {Options} options */
export function write_csv(cube, options) {
  const places = present(cube);
  const columns = [...categories(cube, places, options), ...figures(cube, places, options)];
  const lines = [columns.map(([name]) => quoted(name)), ...places.map((_, k) => columns.map(([, cells]) => cells[k]))];
  return utf8(lines.map((line) => `${line.join(options.separator)}\n`).join(""));
}

/**
 * Columns of codes, labels or both, with names that differ.
 * @param {Cube} cube @param {number[]} places @param {Options} options @returns {[string, string[]][]}
 */
function categories(cube, places, options) {
  const labels = options.labels ?? "codes";
  /** @type {Map<string, string[]>} */
  const found = new Map();
  let inner = cube.values.length;
  for (const axis of cube.axes) {
    inner /= axis.length;
    const step = inner;
    const put = (/** @type {string} */ name, /** @type {string[]} */ texts) => {
      const cells = texts.map(quoted);
      found.set(fresh_name(name, found.keys()), places.map((k) => cells[Math.floor(k / step) % axis.length]));
    };
    const shown = axis.entries.map((entry) => entry.label);
    if (labels !== "labels") put(axis.name, axis.codes);
    if (labels !== "codes") put(labels === "both" ? `${axis.name}_label` : axis.label, shown);
  }
  return [...found];
}

/**
 * The figures, and the status where any cell has one.
 * @param {Cube} cube @param {number[]} places @param {Options} options @returns {[string, string[]][]}
 */
function figures(cube, places, options) {
  const signs = symbols(cube.values, cube.status);
  const write = cube.is_integer ? String : decimal_text;
  const taken = column_names(cube, options);
  const named = (/** @type {string} */ wish, /** @type {string[]} */ cells) =>
    /** @type {[string, string[]]} */ ([fresh_name(wish, taken), cells]);
  const found = [named(measure_of(cube, options), places.map((k) => (signs[k] ? "" : write(cube.values[k]))))];
  if (cube.status.some(Boolean)) found.push(named("status", places.map((k) => quoted(STATUS_NAMES[cube.status[k]]))));
  return found;
}

/** @param {Cube} cube @param {Options} options */
const column_names = (cube, options) => categories(cube, [], options).map(([name]) => name);

/**
 * A float as Arrow writes it: no decimals where there are none, powers of ten from 1e10 and below 1e-6.
 * @param {number} value
 */
function decimal_text(value) {
  const { sign, digits, exponent } = shortest_digits(value);
  if (exponent >= -6 && exponent < 10) {
    if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
    const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
    const rest = digits.slice(exponent + 1);
    return sign + (rest ? `${whole}.${rest}` : whole);
  }
  const rest = digits.slice(1);
  return `${sign}${digits[0]}${rest ? `.${rest}` : ""}e${exponent < 0 ? "-" : "+"}${Math.abs(exponent)}`;
}
