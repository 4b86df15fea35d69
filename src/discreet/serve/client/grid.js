// The table part of a page: one layer of a cube, folded and sorted, with its numbers written.

import { parents, product, strides_of } from "./cube.js";
import { symbols, TableLayout } from "./layout.js";
import { decimals_of } from "./numbers.js";
import { Refusal } from "./refusals.js";
import { repr, size, sorted, words } from "./strings.js";

/** @typedef {import("./cube.js").Cube} Cube */
/** @typedef {import("./cube.js").CubeAxis} CubeAxis */
/** @typedef {import("./cube.js").CubeEntry} CubeEntry */
/** @typedef {import("./query.js").View} View */
/** @typedef {import("./numbers.js").Numbers} Numbers */
/** @typedef {{variable: string, code: string, is_open: boolean}} Fold */
/** @typedef {{entry: CubeEntry, span: number, column: string, fold: Fold | null}} Head */
/** @typedef {{entries: CubeEntry[], indent: number, is_lead: boolean, cells: string[], fold: Fold | null}} Row */

export const ONLY_COLUMN = "value";
const EXPLAINED = /** @type {const} */ ([["–", "impossible"], [":c", "hidden"], ["..", "undefined"]]);
const ON_PAGES = { undefined: "..", absent: "–", impossible: "–", hidden: ":c" };
const SEPARATOR = "|";

/**
 * The rows and columns that a view shows of a cube.
 * @param {Cube} cube @param {number} n_rows @param {number} n_columns @param {View} view
 */
export function layout_of(cube, n_rows, n_columns, view) {
  for (const axis of cube.axes.slice(n_rows + n_columns)) cube = cube.at(axis.name, layer_of(axis, view));
  const kept = cube.axes.map((axis) => visible(axis, view));
  const rows = view.sort ? sort_rows(cube, n_rows, kept, view.sort) : null;
  return TableLayout.of(cube, n_rows, kept, rows);
}

/** What the template of a table reads. @param {TableLayout} layout @param {View} view @param {Numbers} numbers */
export function grid_parts(layout, view, numbers) {
  const texts = cell_texts(layout, numbers, view.show !== "count");
  const folds = layout.row_axes.map((axis) => folds_of(axis, view));
  const rows = layout.rows.map((entries, k) => row_of(entries, texts[k], folds));
  const is_grouped = layout.row_axes.length > 1;
  const used = new Set(texts.flat());
  const heads = heads_of(layout, view);
  return {
    layout,
    heads,
    blocks: print_blocks(layout, heads, texts),
    groups: is_grouped ? row_groups(layout.rows, rows) : [{ title: null, rows }],
    is_grouped,
    has_folds: rows.some((row) => row.fold),
    symbols: new Map(EXPLAINED.filter(([symbol]) => used.has(symbol))),
  };
}

const [SHEET, LANDSCAPE] = [500, 760]; // points between the margins of A4, upright and turned
const [SIGN, SMALL_SIGN] = [5.6, 4.7]; // points of a character in tables of 9 and of 7.5 points
const [PADDING, MOST_HEADING] = [9, 36]; // points of a column; characters of a row's heading

/**
 * A table in parts that have room on paper, each with all rows; none where it needs no parts.
 * @param {TableLayout} layout @param {Head[][]} heads @param {string[][]} texts
 */
function print_blocks(layout, heads, texts) {
  const last_line = heads[heads.length - 1];
  const longest_words = last_line ? last_line.map((head) => Math.max(0, ...words(head.entry.label).map(size))) : [0];
  const n = texts.length > 0 ? Math.min(longest_words.length, texts[0].length) : longest_words.length;
  const signs = Array.from(
    { length: n },
    (_, k) => texts.reduce((most, line) => Math.max(most, size(line[k])), Math.max(3, longest_words[k])),
  );
  const longest = layout.rows.reduce(
    (most, row) => Math.max(most, row.reduce((sum, e) => sum + size(e.label) + 2, 0)),
    0,
  );
  const stub = Math.min(longest, MOST_HEADING) + 6;
  if ((stub + signs.reduce((sum, k) => sum + k, 0)) * SIGN + PADDING * (signs.length + 1) <= SHEET) return [];
  const room = LANDSCAPE - stub * SMALL_SIGN - PADDING;
  const ends = accumulated(signs.map((k) => k * SMALL_SIGN + PADDING));
  const borders = accumulated((heads[heads.length - 2] ?? []).map((head) => head.span));
  const found = [];
  for (let first = 0; first < signs.length; ) {
    const start = first > 0 ? ends[first - 1] : 0;
    let last = Math.max(first + 1, ends.filter((end) => end - start <= room).length);
    const between = borders.filter((k) => first < k && k <= last);
    if (between.length > 0 && last < signs.length) last = Math.max(...between);
    found.push({ heads: cut_heads(heads, first, last), first, last });
    first = last;
  }
  return found;
}

/** @param {number[]} sizes */
function accumulated(sizes) {
  let sum = 0;
  return sizes.map((n) => (sum += n));
}

/**
 * The headers over the columns from one place to another.
 * @param {Head[][]} heads @param {number} first @param {number} last
 */
function cut_heads(heads, first, last) {
  return heads.map((line) => {
    const ends = accumulated(line.map((head) => head.span));
    const cut = line.map(
      (head, k) => ({ ...head, span: Math.min(ends[k], last) - Math.max(ends[k] - head.span, first) }),
    );
    return cut.filter((head) => head.span > 0);
  });
}

/**
 * The code of a layer that is shown: the chosen one, or the total, or the last period.
 * @param {CubeAxis} axis @param {View} view
 */
export function layer_of(axis, view) {
  const chosen = view.layer.get(axis.name);
  if (chosen !== undefined && axis.codes.includes(chosen)) return chosen;
  return axis.codes[axis.total ?? axis.length - 1];
}

/**
 * Which entries have no other one under them among these; the total only where it is alone.
 * @param {CubeEntry[]} entries
 */
export function leaves(entries) {
  const above = new Set(parents(entries));
  return entries.map((entry, k) => !above.has(k) && (!entry.is_total || entries.length === 1));
}

/**
 * The text of every cell: its number, or a symbol where there is none.
 * @param {TableLayout} layout @param {Numbers} numbers @param {boolean} is_share
 */
export function cell_texts(layout, numbers, is_share) {
  const { is_shown } = layout;
  const values = layout.values.map((value, k) => (is_shown[k] ? value : 0));
  const decimals = is_share ? 1 : decimals_of(values, layout.is_integer);
  const signs = symbols(layout.values, layout.status, ON_PAGES);
  const n = layout.columns.length;
  return layout.rows.map(
    (_, r) => layout.columns.map((__, c) => signs[r * n + c] || numbers.format(values[r * n + c], decimals)),
  );
}

/**
 * A row is named by its last variables that are not totals, and by the lead otherwise.
 * @param {CubeEntry[]} entries @param {string[]} cells @param {Map<string, Fold>[]} folds @returns {Row}
 */
function row_of(entries, cells, folds) {
  const lead = entries.slice(0, 1);
  const rest = [...entries.entries()].filter(([k, entry]) => k > 0 && !entry.is_total);
  const named = rest.map(([, entry]) => entry);
  const indent = [...lead, ...named].reduce((sum, entry) => sum + entry.depth, 0);
  const [k, entry] = rest[rest.length - 1] ?? [0, entries[0]];
  const fold = entry ? (folds[k].get(entry.code) ?? null) : null;
  return { entries: named.length > 0 ? named : lead, indent, is_lead: rest.length === 0, cells, fold };
}

/** Rows of one code of the first row variable. @param {CubeEntry[][]} combinations @param {Row[]} rows */
function row_groups(combinations, rows) {
  /** @type {{lead: CubeEntry, rows: Row[]}[]} */
  const made = [];
  combinations.forEach(([lead], k) => {
    const last = made[made.length - 1];
    const is_same = last && last.lead.fields.every((field, f) => field === lead.fields[f]);
    if (is_same) last.rows.push(rows[k]);
    else made.push({ lead, rows: [rows[k]] });
  });
  return made.map((group) => ({ title: group.rows[0].is_lead ? null : group.lead, rows: group.rows }));
}

/**
 * A line of headers for each column variable, each over the columns of those below it.
 * @param {TableLayout} layout @param {View} view @returns {Head[][]}
 */
function heads_of(layout, view) {
  const sizes = layout.column_axes.map((axis) => axis.length);
  return layout.column_axes.map((axis, k) => {
    const span = product(sizes.slice(k + 1));
    const folds = folds_of(axis, view);
    const is_last = k === sizes.length - 1;
    const entries = Array.from({ length: product(sizes.slice(0, k)) }, () => axis.entries).flat();
    return entries.map((entry, place) => {
      const column = is_last ? layout.columns[place].map((one) => one.code).join(SEPARATOR) : "";
      return { entry, span, column, fold: folds.get(entry.code) ?? null };
    });
  });
}

/**
 * The entries of a variable whose parts are shown, or are folded away.
 * @param {CubeAxis} axis @param {View} view @returns {Map<string, Fold>}
 */
function folds_of(axis, view) {
  const folded = new Set(view.folded.get(axis.name));
  const above = new Set(parents(axis.entries).flatMap((k) => (k === null ? [] : [axis.entries[k].code])));
  const found = axis.entries.filter((e) => above.has(e.code) || (folded.has(e.code) && !e.is_total));
  return new Map(found.map((e) => [e.code, { variable: axis.name, code: e.code, is_open: !folded.has(e.code) }]));
}

/**
 * The places that are neither under a folded code nor, where they are off, totals.
 * @param {CubeAxis} axis @param {View} view
 */
function visible(axis, view) {
  const folded = new Set(view.folded.get(axis.name));
  /** @type {number | null} */
  let hidden_below = null;
  return axis.entries.flatMap((entry, place) => {
    if (hidden_below !== null && entry.depth > hidden_below) return [];
    hidden_below = folded.has(entry.code) && !entry.is_total ? entry.depth : null;
    return view.totals || !entry.is_total || axis.length === 1 ? [place] : [];
  });
}

/**
 * What rows are sorted by, an array over the row variables; small first.
 * @param {Cube} cube @param {CubeAxis[]} columns @param {string} sort
 */
function sort_key(cube, columns, sort) {
  const name = sort.startsWith("-") ? sort.slice(1) : sort;
  const codes = columns.length > 0 ? name.split(SEPARATOR) : [];
  const is_known = codes.length === columns.length && (columns.length > 0 || name === ONLY_COLUMN);
  if (!is_known || columns.some((axis, k) => !axis.codes.includes(codes[k]))) {
    throw new Refusal(
      "unknown_column",
      `Rows cannot be sorted by ${repr(name)}: the table has no such column.`,
      "Choose one of the columns of the table.",
    );
  }
  const { is_shown } = cube;
  const width = product(columns.map((axis) => axis.length));
  const strides = strides_of(columns.map((axis) => axis.length));
  const at = columns.reduce((sum, axis, k) => sum + axis.place(codes[k]) * strides[k], 0);
  const direction = sort.startsWith("-") ? -1 : 1;
  return Float64Array.from(
    { length: cube.values.length / width },
    (_, k) => (is_shown[k * width + at] ? direction * cube.values[k * width + at] : NaN),
  );
}

/**
 * Rows by the first variable at the total of the others, then within each of its entries.
 * @param {Cube} cube @param {number} n_rows @param {number[][]} kept @param {string} sort
 */
function sort_rows(cube, n_rows, kept, sort) {
  const axes = cube.axes.slice(0, n_rows);
  const key = sort_key(cube, cube.axes.slice(n_rows), sort);
  const strides = strides_of(axes.map((axis) => axis.length));
  const at_totals = axes.map((axis, k) => (axis.total ?? axis.length - 1) * strides[k]);
  /** @param {number} d @param {number} start @returns {number[][]} */
  const under = (d, start) => {
    if (d === axes.length) return [[]];
    const others = at_totals.slice(d + 1).reduce((sum, k) => sum + k, 0);
    const by = (/** @type {number} */ place) => key[start + place * strides[d] + others];
    const places = sort_siblings(kept[d].map((k) => axes[d].entries[k]), kept[d], by);
    return places.flatMap((place) => under(d + 1, start + place * strides[d]).map((rest) => [place, ...rest]));
  };
  return under(0, 0);
}

/**
 * The places in a new order in which each entry still stands under the one it belongs to.
 * @param {CubeEntry[]} entries @param {number[]} places @param {(place: number) => number} by
 */
function sort_siblings(entries, places, by) {
  const above = parents(entries);
  const rank = (/** @type {number} */ k) => {
    const value = by(places[k]);
    return [Number(!entries[k].is_total), Number(Number.isNaN(value)), Number.isNaN(value) ? 0 : value];
  };
  /** @param {number | null} parent @returns {number[]} */
  const under_one = (parent) => {
    const siblings = [...entries.keys()].filter((k) => above[k] === parent);
    return sorted(siblings, rank).flatMap((k) => [places[k], ...under_one(k)]);
  };
  return under_one(null);
}
