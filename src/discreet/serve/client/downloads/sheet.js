// A workbook as XML: sheets of cells with their looks, in a zip archive. It knows no tables.

import { zip } from "./zip.js";

/**
 * How a cell looks; what is left out is usual.
 * @typedef {{bold?: boolean, italic?: boolean, size?: number, bottom?: boolean, number?: string, align?: string,
 *   valign?: string, indent?: number, wrap?: boolean}} Look
 */

const MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const PACKAGE = "http://schemas.openxmlformats.org/package/2006";
const OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml";
const HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const CREATED = "2000-01-01T00:00:00Z"; // so that equal tables are equal files
const LONGEST = 32_767; // UTF-16 units of a cell
const DIGIT = 7; // pixels of a digit of the usual font, by which programs measure columns

/** A text that XML and Excel read as it is. @param {string} text */
function xml_text(text) {
  const safe = text.slice(0, LONGEST).replace(/_(?=x[0-9a-fA-F]{4}_)/g, "_x005F_");
  const hex = (/** @type {string} */ sign) => sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
  const codes = safe.replace(/[\x00-\x08\x0b-\x1f\ufffe\uffff]/g, (sign) => `_x${hex(sign)}_`);
  return codes.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}

/** The letters of a column. @param {number} place @returns {string} */
function letters(place) {
  const last = String.fromCharCode(65 + (place % 26));
  return place < 26 ? last : letters(Math.floor(place / 26) - 1) + last;
}

/** @param {number} row @param {number} column */
const at = (row, column) => `${letters(column)}${row + 1}`;

/** A sheet of a workbook. */
export class Sheet {
  /** @param {string} name */
  constructor(name) {
    this.name = name;
    /** @type {Map<number, [number, string | number | null, Look][]>} */
    this.rows = new Map();
    /** @type {string[]} */ this.merged = [];
    /** @type {Map<number, number>} */ this.widths = new Map();
    /** @type {Map<number, number>} */ this.heights = new Map();
    this.is_wide = false;
    this.is_first = false;
    this.paper = "";
    /** The first row and column that move. @type {[number, number] | null} */
    this.frozen = null;
    /** The rows that stand on every printed page. @type {[number, number] | null} */
    this.repeated = null;
    /** The last row and column that are printed. @type {[number, number]} */
    this.printed = [0, 0];
  }

  /** @param {number} row @param {number} column @param {string | number | null} value @param {Look} [look] */
  put(row, column, value, look = {}) {
    const cells = this.rows.get(row) ?? [];
    cells.push([column, value, look]);
    this.rows.set(row, cells);
  }

  /**
   * One cell over several columns.
   * @param {number} row @param {number} first @param {number} last @param {string} value @param {Look} look
   */
  merge(row, first, last, value, look) {
    this.put(row, first, value, look);
    for (let column = first + 1; column <= last; column++) this.put(row, column, null, look);
    this.merged.push(`${at(row, first)}:${at(row, last)}`);
  }

  /** The widest row and column that hold anything. */
  get corner() {
    const columns = [...this.rows.values()].flat().map(([column]) => column);
    return at([...this.rows.keys()].reduce((a, b) => Math.max(a, b), 0), columns.reduce((a, b) => Math.max(a, b), 0));
  }

  /** @param {Looks} looks */
  xml(looks) {
    const merged = this.merged.map((ref) => `<mergeCell ref="${ref}"/>`).join("");
    return [
      `${HEAD}<worksheet xmlns="${MAIN}" xmlns:r="${OFFICE}">`,
      `<sheetPr><pageSetUpPr fitToPage="1"/></sheetPr><dimension ref="A1:${this.corner}"/>`,
      `<sheetViews><sheetView${this.is_first ? ' tabSelected="1"' : ""} workbookViewId="0">`,
      `${this.pane}</sheetView></sheetViews>`,
      '<sheetFormatPr defaultRowHeight="15"/>',
      this.columns,
      "<sheetData>",
      ...[...this.rows.keys()].sort((a, b) => a - b).map((row) => this.line(row, looks)),
      "</sheetData>",
      merged && `<mergeCells count="${this.merged.length}">${merged}</mergeCells>`,
      '<pageMargins left="0.7" right="0.7" top="0.75" bottom="0.75" header="0.3" footer="0.3"/>',
      `<pageSetup ${this.paper}fitToHeight="0" orientation="${this.is_wide ? "landscape" : "portrait"}"/></worksheet>`,
    ].join("");
  }

  get pane() {
    if (!this.frozen) return "";
    const [rows, columns] = this.frozen;
    const split = columns ? `xSplit="${columns}" ` : "";
    const pane = columns ? "bottomRight" : "bottomLeft";
    const corner = `topLeftCell="${at(rows, columns)}" activePane="${pane}" state="frozen"`;
    return `<pane ${split}ySplit="${rows}" ${corner}/><selection pane="${pane}"/>`;
  }

  get columns() {
    const widths = [...this.widths].map(([column, characters]) => {
      const width = Math.floor(((characters * DIGIT + 5) * 256) / DIGIT) / 256;
      return `<col min="${column + 1}" max="${column + 1}" width="${width}" customWidth="1"/>`;
    });
    return `<cols>${widths.join("")}</cols>`;
  }

  /** @param {number} row @param {Looks} looks */
  line(row, looks) {
    const height = this.heights.get(row);
    const tall = height ? ` ht="${height}" customHeight="1"` : "";
    const cells = (this.rows.get(row) ?? []).map(([column, value, look]) =>
      cell(at(row, column), value, looks.place(look)));
    return `<row r="${row + 1}"${tall}>${cells.join("")}</row>`;
  }
}

/** @param {string} ref @param {string | number | null} value @param {number} look */
function cell(ref, value, look) {
  const start = `<c r="${ref}"${look ? ` s="${look}"` : ""}`;
  if (value === null) return `${start}/>`;
  // As many digits as Excel keeps.
  if (typeof value === "number") return `${start}><v>${Number(value.toPrecision(16))}</v></c>`;
  return `${start} t="inlineStr"><is><t xml:space="preserve">${xml_text(value)}</t></is></c>`;
}

/** The looks of a workbook's cells, each once. */
class Looks {
  constructor() {
    /** @type {Map<string, number>} */
    this.places = new Map([["{}", 0]]);
    /** @type {string[]} */ this.fonts = [font({})];
    /** @type {string[]} */ this.formats = [];
    this.written = ['<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'];
  }

  /** @param {Look} look */
  place(look) {
    const key = JSON.stringify(look);
    const known = this.places.get(key);
    if (known !== undefined) return known;
    const aligned = alignment(look);
    const number = look.number ? 164 + placed(this.formats, look.number) : 0;
    const drawn = `fontId="${placed(this.fonts, font(look))}" fillId="0" borderId="${look.bottom ? 1 : 0}"`;
    const ids = `numFmtId="${number}" ${drawn} xfId="0"`;
    const applied = 'applyNumberFormat="1" applyFont="1" applyBorder="1" applyAlignment="1"';
    this.places.set(key, this.written.length);
    this.written.push(`<xf ${ids} ${applied}>${aligned}</xf>`);
    return this.written.length - 1;
  }

  xml() {
    const formats = this.formats.map((code, k) => `<numFmt numFmtId="${164 + k}" formatCode="${code}"/>`);
    const edges = "<left/><right/><top/>";
    const bottoms = ["<bottom/>", '<bottom style="thin"><color auto="1"/></bottom>'];
    const borders = bottoms.map((bottom) => `<border>${edges}${bottom}<diagonal/></border>`).join("");
    return [
      `${HEAD}<styleSheet xmlns="${MAIN}">`,
      formats.length ? `<numFmts count="${formats.length}">${formats.join("")}</numFmts>` : "",
      `<fonts count="${this.fonts.length}">${this.fonts.join("")}</fonts>`,
      '<fills count="2"><fill><patternFill patternType="none"/></fill>',
      '<fill><patternFill patternType="gray125"/></fill></fills>',
      `<borders count="2">${borders}</borders>`,
      '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>',
      `<cellXfs count="${this.written.length}">${this.written.join("")}</cellXfs>`,
      '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>',
    ].join("");
  }
}

/** The place of a text in a list, at whose end it is put if it is new. @param {string[]} list @param {string} text */
function placed(list, text) {
  const found = list.indexOf(text);
  return found < 0 ? list.push(text) - 1 : found;
}

/** @param {Look} look */
function font({ bold, italic, size = 11 }) {
  const looks = `${bold ? "<b/>" : ""}${italic ? "<i/>" : ""}`;
  return `<font>${looks}<sz val="${size}"/><name val="Calibri"/><family val="2"/></font>`;
}

/** @param {Look} look */
function alignment({ align, valign, indent, wrap }) {
  const horizontal = align ?? (indent ? "left" : "");
  const parts = [
    horizontal && `horizontal="${horizontal}"`,
    valign && `vertical="${valign}"`,
    indent ? `indent="${indent}"` : "",
    wrap ? 'wrapText="1"' : "",
  ];
  return `<alignment ${parts.filter(Boolean).join(" ")}/>`;
}

/** @param {string} title @param {Sheet[]} sheets */
export function workbook(title, sheets) {
  const looks = new Looks();
  const pages = sheets.map(
    (sheet, k) => /** @type {[string, string]} */ ([`xl/worksheets/sheet${k + 1}.xml`, sheet.xml(looks)]),
  );
  const parts = sheets.map((_, k) => /** @type {[string, string]} */ (["worksheet", `worksheets/sheet${k + 1}.xml`]));
  return zip([
    ["[Content_Types].xml", content_types(pages.map(([path]) => path))],
    [
      "_rels/.rels",
      relations([["officeDocument", "xl/workbook.xml"], ["metadata/core-properties", "docProps/core.xml"]]),
    ],
    ["docProps/core.xml", properties(title)],
    ["xl/workbook.xml", book_xml(sheets)],
    ["xl/_rels/workbook.xml.rels", relations([...parts, ["styles", "styles.xml"]])],
    ...pages,
    ["xl/styles.xml", looks.xml()],
  ]);
}

/** @param {Sheet[]} sheets */
function book_xml(sheets) {
  const listed = sheets.map(({ name }, k) => `<sheet name="${xml_text(name)}" sheetId="${k + 1}" r:id="rId${k + 1}"/>`);
  const names = sheets.flatMap(({ name, printed, repeated }, k) => {
    const defined = (/** @type {string} */ what, /** @type {string} */ range) =>
      `<definedName name="_xlnm.${what}" localSheetId="${k}">'${name}'!${range}</definedName>`;
    return [
      defined("Print_Area", `$A$1:$${letters(printed[1])}$${printed[0] + 1}`),
      repeated ? defined("Print_Titles", `$${repeated[0] + 1}:$${repeated[1] + 1}`) : "",
    ];
  });
  const body = `<sheets>${listed.join("")}</sheets><definedNames>${names.join("")}</definedNames>`;
  return `${HEAD}<workbook xmlns="${MAIN}" xmlns:r="${OFFICE}">${body}</workbook>`;
}

/** @param {[string, string][]} targets Kinds and paths. */
function relations(targets) {
  const listed = targets.map(([kind, path], k) => {
    const type = kind.includes("/") ? `${PACKAGE}/relationships/${kind}` : `${OFFICE}/${kind}`;
    return `<Relationship Id="rId${k + 1}" Type="${type}" Target="${path}"/>`;
  });
  return `${HEAD}<Relationships xmlns="${PACKAGE}/relationships">${listed.join("")}</Relationships>`;
}

/** @param {string[]} pages */
function content_types(pages) {
  const parts = [
    ...pages.map((path) => [path, `${TYPES}.worksheet+xml`]),
    ["xl/workbook.xml", `${TYPES}.sheet.main+xml`],
    ["xl/styles.xml", `${TYPES}.styles+xml`],
    ["docProps/core.xml", "application/vnd.openxmlformats-package.core-properties+xml"],
  ];
  const listed = parts.map(([path, type]) => `<Override PartName="/${path}" ContentType="${type}"/>`);
  const rest =
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>' +
    '<Default Extension="xml" ContentType="application/xml"/>';
  return `${HEAD}<Types xmlns="${PACKAGE}/content-types">${rest}${listed.join("")}</Types>`;
}

/** @param {string} title */
function properties(title) {
  const names =
    'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/" ' +
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"';
  const day = `xsi:type="dcterms:W3CDTF">${CREATED}`;
  const dates = `<dcterms:created ${day}</dcterms:created><dcterms:modified ${day}</dcterms:modified>`;
  const start = `<cp:coreProperties xmlns:cp="${PACKAGE}/metadata/core-properties" ${names}>`;
  return `${HEAD}${start}<dc:title>${xml_text(title)}</dc:title>${dates}</cp:coreProperties>`;
}
