// A cube as rows and columns, `release/layout.py`, and the signs in place of figures.

import { ABSENT, CubeAxis, is_hidden, STATUS, strides_of } from "./cube.js";

/** @typedef {import("./cube.js").Cube} Cube */
/** @typedef {import("./cube.js").CubeEntry} CubeEntry */
/** @typedef {{undefined: string, absent: string, impossible: string, hidden: string}} Signs */

/** Of files. @type {Signs} */
export const IN_FILES = { undefined: ":", absent: ":", impossible: ":z", hidden: ":c" };

/**
 * For each cell the sign that stands in place of its figure; empty where it has one.
 * @param {Float64Array} values @param {Int8Array} status @param {Signs} [signs]
 */
export function symbols(values, status, signs = IN_FILES) {
  return Array.from(status, (one, k) => {
    if (is_hidden(one)) return signs.hidden;
    if (one === STATUS.structural_zero) return signs.impossible;
    if (one === ABSENT) return signs.absent;
    return Number.isNaN(values[k]) ? signs.undefined : "";
  });
}

/** All combinations, the last one changing fastest. @template T @param {T[][]} lists @returns {T[][]} */
export function crossed(lists) {
  return lists.reduce(
    (made, list) => made.flatMap((front) => list.map((one) => [...front, one])),
    /** @type {T[][]} */ ([[]]),
  );
}

/** Figures by rows and columns. */
export class TableLayout {
  /**
   * @param {{row_axes: CubeAxis[], column_axes: CubeAxis[], rows: CubeEntry[][], columns: CubeEntry[][],
   *   values: Float64Array, status: Int8Array, is_integer: boolean}} parts
   */
  constructor(parts) {
    this.row_axes = parts.row_axes;
    this.column_axes = parts.column_axes;
    this.rows = parts.rows;
    this.columns = parts.columns;
    this.values = parts.values;
    this.status = parts.status;
    this.is_integer = parts.is_integer;
  }

  /**
   * The layout of a cube whose variables are those in rows, then those in columns.
   * @param {Cube} cube @param {number} n_rows
   * @param {number[][] | null} [kept] For each variable the places of the entries that are shown.
   * @param {number[][] | null} [rows] For each row the places of its entries.
   */
  static of(cube, n_rows, kept = null, rows = null) {
    const places = kept ?? cube.axes.map((axis) => [...axis.entries.keys()]);
    const [row_axes, column_axes] = [cube.axes.slice(0, n_rows), cube.axes.slice(n_rows)];
    const columns = crossed(places.slice(n_rows));
    rows ??= crossed(places.slice(0, n_rows));
    const strides = strides_of(cube.shape);
    const flat = (/** @type {number[]} */ at, /** @type {number} */ first) =>
      at.reduce((sum, k, d) => sum + k * strides[first + d], 0);
    const [down, across] = [rows.map((row) => flat(row, 0)), columns.map((column) => flat(column, n_rows))];
    const cells = down.flatMap((start) => across.map((k) => start + k));
    const shown = cube.axes.map(
      (axis, k) => new CubeAxis(axis.name, axis.label, places[k].map((place) => axis.entries[place])),
    );
    return new TableLayout({
      row_axes: shown.slice(0, n_rows),
      column_axes: shown.slice(n_rows),
      rows: rows.map((row) => row.map((k, d) => row_axes[d].entries[k])),
      columns: columns.map((column) => column.map((k, d) => column_axes[d].entries[k])),
      values: Float64Array.from(cells, (k) => cube.values[k]),
      status: Int8Array.from(cells, (k) => cube.status[k]),
      is_integer: cube.is_integer,
    });
  }

  /** Which cells show a figure. */
  get is_shown() {
    return Uint8Array.from(this.status, (status) => (status !== ABSENT && !is_hidden(status) ? 1 : 0));
  }
}
