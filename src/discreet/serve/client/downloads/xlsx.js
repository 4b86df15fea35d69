// XLSX: a sheet of the table and one of notes, as `release/formats/xlsx.py` lays them out.

import { decimals_of, format_grouped } from "../numbers.js";
import { symbols } from "../layout.js";
import { size } from "../strings.js";
import { Sheet, workbook } from "./sheet.js";
import { heading, layout_of_file, MEANINGS, measure_of, said, used_symbols } from "./table.js";

/** @typedef {import("./table.js").Cube} Cube */
/** @typedef {import("./table.js").Options} Options */
/** @typedef {import("../layout.js").TableLayout} TableLayout */

const [WIDEST, NARROWEST] = [40, 9]; // characters of a column
const WIDE = 8; // columns from which on a page is printed across
const [PAGE, LINE] = [95, 15]; // characters of a line across a page, and its height in points
const MOST_HEADS = 12; // columns of figures that can be read on a printed page
const [MOST_ROWS, MOST_COLUMNS] = [1_048_000, 16_384];
const FIRST_ROW = 2; // title and an empty line stand above
const MEASURED = 200; // rows by whose figures the width of a column is chosen
const TITLE = { bold: true, size: 13 };

/** @param {Cube} cube @param {Options} options */
export function write_xlsx(cube, options) {
  return workbook(options.about.title, [table_sheet(cube, options), notes_sheet(cube, options)]);
}

/** @param {Cube} cube @param {Options} options */
function table_sheet(cube, options) {
  const sheet = new Sheet("Table");
  sheet.is_first = true;
  sheet.paper = 'paperSize="9" '; // A4
  const table = layout_of_file(cube, options, MOST_HEADS);
  const stub = table.row_axes.length;
  check_size(table.rows.length, stub + table.columns.length);
  const depth = Math.max(table.column_axes.length, 1);
  const first = FIRST_ROW + depth;
  write_heads(sheet, table, cube, options);
  write_figures(sheet, table, options, first, number_format(cube));
  sheet.frozen = [first, stub];
  sheet.repeated = [FIRST_ROW, first - 1];
  const used = used_symbols(cube);
  const below = Object.keys(MEANINGS).filter((sign) => used.includes(sign)).map((sign) => `${sign}  ${MEANINGS[sign]}`);
  const row = first + table.rows.length;
  const about = options.about;
  const edition = about.edition && `Edition ${about.edition}`;
  const imprint = [about.source, edition, about.updated].filter(Boolean).join(" · ");
  const under = [...below, ...about.footnotes];
  const feet = under.map((text, k) => /** @type {[number, string]} */ ([row + 1 + k, text]));
  /** @type {[number, string][]} */
  const texts = [[0, about.title || measure_of(cube, options)], [1, imprint], ...feet];
  sheet.is_wide = sheet.widths.size >= WIDE;
  sheet.printed = [row + under.length, write_texts(sheet, texts.filter(([, text]) => text))];
  return sheet;
}

/**
 * Write texts over and under a table by their rows, and return the last column to be printed: columns
 * beside the table where texts need them.
 * @param {Sheet} sheet @param {[number, string][]} texts
 */
function write_texts(sheet, texts) {
  const table = [...sheet.widths.values()].reduce((sum, width) => sum + width, 0);
  const extent = (/** @type {number} */ row, /** @type {string} */ text) =>
    size(text) + (row ? 0 : Math.trunc(size(text) / 3));
  const longest = texts.reduce((most, [row, text]) => Math.max(most, extent(row, text)), 0);
  const beside = Math.max(0, Math.ceil((Math.min(PAGE, longest) - table) / NARROWEST));
  const last = sheet.widths.size + beside - 1;
  const room = table + beside * NARROWEST;
  texts.forEach(([row, text]) => {
    const look = row >= FIRST_ROW ? { italic: true } : row ? { valign: "top" } : TITLE;
    const lines = Math.ceil(extent(row, text) / room);
    if (lines > 1) sheet.merge(row, 0, last, text, { ...look, wrap: true, valign: "top" });
    else sheet.put(row, 0, text, look);
    const space = [3, 6, 0][Math.min(row, FIRST_ROW)]; // below what stands under the title
    if (lines > 1 || row === 1) sheet.heights.set(row, LINE * lines + space);
  });
  return last;
}

/**
 * Names of the rows' variables, and headings of columns; what stands over several columns spans them.
 * @param {Sheet} sheet @param {TableLayout} table @param {Cube} cube @param {Options} options
 */
function write_heads(sheet, table, cube, options) {
  const labels = options.labels ?? "labels";
  const stub = table.row_axes.length;
  const depth = Math.max(table.column_axes.length, 1);
  const last = FIRST_ROW + depth - 1;
  const side = { bold: true, bottom: true };
  table.row_axes.forEach((axis, j) => sheet.put(last, j, labels === "codes" ? axis.name : axis.label, side));
  const heads = table.column_axes.length
    ? table.columns.map((entries) => entries.map((entry) => heading(entry, labels)))
    : [[options.measure || cube.unit]];
  for (let line = 0; line < depth - 1; line++) {
    let place = 0;
    while (place < heads.length) {
      const texts = heads[place].slice(0, line + 1);
      const end = heads.findIndex((other, k) => k > place && texts.some((text, l) => other[l] !== text));
      const next = end < 0 ? heads.length : end;
      const over = { ...side, align: "center" };
      const [row, text] = [FIRST_ROW + line, texts[line]];
      if (next - place === 1) sheet.put(row, stub + place, text, over);
      else sheet.merge(row, stub + place, stub + next - 1, text, over);
      place = next;
    }
  }
  heads.forEach((texts, j) => sheet.put(last, stub + j, texts[depth - 1], { ...side, align: "right" }));
}

/**
 * @param {Sheet} sheet @param {TableLayout} table @param {Options} options @param {number} first
 * @param {string} number
 */
function write_figures(sheet, table, options, first, number) {
  const labels = options.labels ?? "labels";
  const stub = table.row_axes.length;
  const width = table.columns.length;
  const signs = symbols(table.values, table.status);
  const look = { number, align: "right" };
  table.rows.forEach((entries, k) => {
    entries.forEach((entry, j) => {
      const indent = Math.max(entry.depth - 1, 0);
      sheet.put(first + k, j, heading(entry, labels), entry.is_total ? { bold: true } : indent ? { indent } : {});
    });
    for (let j = 0; j < width; j++) {
      sheet.put(first + k, stub + j, signs[k * width + j] || table.values[k * width + j], look);
    }
  });
  table.row_axes.forEach((axis, j) => {
    const name = labels === "codes" ? axis.name : axis.label;
    sheet.widths.set(j, width_of([name, ...axis.entries.map((entry) => "  ".repeat(entry.depth) + entry.label)]));
  });
  const heads = sheet.rows.get(first - 1) ?? [];
  for (let j = 0; j < width; j++) {
    const head = String(heads.find(([column]) => column === stub + j)?.[1] ?? "");
    const shown = table.rows.slice(0, MEASURED).map(
      (_, k) => signs[k * width + j] || format_grouped(table.values[k * width + j], 1),
    );
    sheet.widths.set(stub + j, width_of([head, ...shown]));
  }
}

/** @param {Cube} cube @param {Options} options */
function notes_sheet(cube, options) {
  const sheet = new Sheet("Notes");
  const signs = used_symbols(cube).map((sign) => /** @type {[string, string]} */ ([sign, MEANINGS[sign]]));
  const told = [...said(cube, options.about), ...signs];
  told.forEach(([head, text], row) => {
    sheet.put(row, 0, head, { bold: true, valign: "top" });
    sheet.put(row, 1, text, { wrap: true, valign: "top" });
    // programs other than Excel do not make room for a text of several lines by themselves
    const lines = Math.ceil(size(text) / PAGE);
    if (lines !== 1) sheet.heights.set(row, LINE * lines);
  });
  sheet.widths.set(0, width_of(told.map(([head]) => head)));
  sheet.widths.set(1, PAGE + 5);
  sheet.printed = [told.length, 1];
  return sheet;
}

/**
 * Refuse a table that a sheet cannot hold, rather than write a part of it.
 * @param {number} rows @param {number} columns
 */
function check_size(rows, columns) {
  if (rows <= MOST_ROWS && columns <= MOST_COLUMNS) return;
  const most = `${format_grouped(MOST_ROWS)} and ${format_grouped(MOST_COLUMNS)}`;
  const size_said = `${format_grouped(rows)} rows and ${format_grouped(columns)} columns`;
  throw new Error(`The table has ${size_said}, but a sheet holds ${most}. Choose CSV.`);
}

/** @param {Cube} cube */
function number_format(cube) {
  const { is_shown } = cube;
  const shown = cube.values.filter((_, k) => is_shown[k]);
  return decimals_of(shown, cube.is_integer) ? "#,##0.0" : "#,##0";
}

/** @param {string[]} texts */
const width_of = (texts) =>
  Math.max(NARROWEST, Math.min(WIDEST, texts.reduce((most, text) => Math.max(most, size(text)), 0) + 2));
