// The files that a browser makes of a table, in the order in which pages offer them.

import { write_csv } from "./csv.js";
import { write_json_stat } from "./jsonstat.js";
import { write_px } from "./px.js";
import { write_xlsx } from "./xlsx.js";

/** @typedef {import("./table.js").Cube} Cube */
/** @typedef {import("./table.js").Options} Options */
/**
 * @typedef {{name: string, title: string, ending: string, media_type: string,
 *   write: (cube: Cube, options: Options) => Uint8Array}} Format
 */

const SPREADSHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";

/** @type {Format[]} */
export const formats = [
  { name: "xlsx", title: "Excel (XLSX)", ending: ".xlsx", media_type: SPREADSHEET, write: write_xlsx },
  { name: "csv", title: "CSV", ending: ".csv", media_type: "text/csv; charset=utf-8", write: write_csv },
  {
    name: "json-stat",
    title: "JSON-stat 2.0",
    ending: ".jsonstat.json",
    media_type: "application/json",
    write: write_json_stat,
  },
  { name: "px", title: "PX (PC-Axis)", ending: ".px", media_type: "application/octet-stream", write: write_px },
];
