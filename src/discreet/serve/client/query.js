// A table as a visitor asks for it, and the address that says the same: `serve/query.py`.

import { sorted_map } from "./python.js";
import { no_such, one_of, Refusal } from "./refusals.js";
import { parse_query, repr, sorted, strip, urlencode } from "./strings.js";

/** @typedef {Map<string, string[]>} Codes */
/** @typedef {[string, string]} Parameter */

export const SHOWS = ["count", "row", "column", "total"];
export const CHARTS = ["none", "bars", "lines", "heat", "pyramid"];
const SEPARATOR = "|";
// Signs that turn the direction of writing: figures and codes behind such a name read backwards.
const SPACES = /[\t-\r\x1c-\x1f\x85\u2028\u2029]/g; // in names, but for those that stay as they are
const UNSEEN = /[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufffe\uffff\u202a-\u202e\u2066-\u2069]/g;
const SINGLE = ["show", "totals", "sort", "chart", "unit"];
const LISTS = /** @type {const} */ (["rows", "columns", "layers"]);
const BY_VARIABLE = ["pick", "where", "group", "layer", "fold"];

/** How a table is looked at. */
export class View {
  show = "count";
  totals = true;
  sort = "";
  chart = "none";
  /** @type {Map<string, string>} */
  layer = new Map();
  /** @type {Codes} */
  folded = new Map();
  /** @param {Partial<View>} [parts] */
  constructor(parts = {}) {
    Object.assign(this, parts);
  }
  get fields() {
    return [this.show, this.totals, this.sort, this.chart, this.layer, this.folded];
  }
}

const OF_VIEW = Object.keys(new View());

/** What a visitor asks for. */
export class Query {
  /** @type {string[]} */
  rows = [];
  /** @type {string[]} */
  columns = [];
  /** @type {string[]} */
  layers = [];
  /** @type {Codes} */
  picked = new Map();
  /** @type {Codes} */
  where = new Map();
  /** @type {Map<string, Codes>} */
  groups = new Map();
  unit = "";
  view = new View();

  /** @param {Partial<Query>} [parts] */
  constructor(parts = {}) {
    Object.assign(this, parts);
  }

  get fields() {
    return [this.rows, this.columns, this.layers, this.picked, this.where, this.groups, this.unit, this.view];
  }

  /** The query of an address. @param {string | Parameter[]} given */
  static parse(given) {
    const parser = new QueryParser();
    for (const [name, value] of typeof given === "string" ? parse_query(given) : given) parser.take(name, value);
    return parser.query();
  }

  get variables() {
    return [...this.rows, ...this.columns, ...this.layers];
  }

  /** The query as parameters of an address, in their one order. @returns {Parameter[]} */
  get parameters() {
    const { view } = this;
    /** @type {Parameter[]} */
    const found = LISTS.flatMap((name) => this[name].map((value) => /** @type {Parameter} */ ([name, value])));
    found.push(...code_parameters("pick", this.picked), ...code_parameters("where", this.where));
    for (const [variable, groups] of sorted_map(this.groups)) {
      for (const [label, codes] of groups) found.push([`group.${variable}`, [label, ...codes].join(SEPARATOR)]);
    }
    if (this.unit) found.push(["unit", this.unit]);
    if (view.show !== "count") found.push(["show", view.show]);
    if (!view.totals) found.push(["totals", "0"]);
    if (view.sort) found.push(["sort", view.sort]);
    if (view.chart !== "none") found.push(["chart", view.chart]);
    for (const [variable, code] of sorted_map(view.layer)) found.push([`layer.${variable}`, code]);
    return [...found, ...code_parameters("fold", view.folded)];
  }

  get address() {
    return urlencode(this.parameters);
  }

  /** What can be shown: shares of rows need columns, and shares of columns rows. */
  get shows() {
    const needed = { row: this.columns, column: this.rows, total: [...this.rows, ...this.columns] };
    return ["count", ...Object.entries(needed).flatMap(([show, names]) => (names.length > 0 ? [show] : []))];
  }

  /** The query with other parts; those of its view by their names. @param {Record<string, any>} parts */
  changed(parts) {
    const named = Object.entries(parts);
    const in_view = Object.fromEntries(named.filter(([name]) => OF_VIEW.includes(name)));
    const others = Object.fromEntries(named.filter(([name]) => !OF_VIEW.includes(name)));
    return new Query({ ...this, view: new View({ ...this.view, ...in_view }), ...others });
  }
}

class QueryParser {
  constructor() {
    /** @type {Record<string, string[]>} */
    this.lists = Object.fromEntries(LISTS.map((name) => [name, []]));
    /** @type {Map<string, string>} */
    this.single = new Map();
    /** @type {Record<string, Codes>} */
    this.coded = Object.fromEntries(BY_VARIABLE.map((name) => [name, new Map()]));
  }

  /** @param {string} name @param {string} value */
  take(name, value) {
    const dot = name.indexOf(".");
    const [kind, variable] = dot < 0 ? [name, ""] : [name.slice(0, dot), name.slice(dot + 1)];
    if (dot >= 0 && variable && BY_VARIABLE.includes(kind)) {
      const codes = this.coded[kind];
      codes.set(variable, [...(codes.get(variable) ?? []), value]);
    } else if (Object.hasOwn(this.lists, name)) {
      if (value) this.lists[name].push(value);
    } else if (SINGLE.includes(name)) {
      this.single.set(name, value);
    } else {
      const known = [...LISTS, ...SINGLE, ...BY_VARIABLE.map((one) => `${one}.VARIABLE`)];
      throw no_such("parameter", name, known, "Parameters", "unknown_parameter");
    }
  }

  query() {
    const { coded } = this;
    return new Query({
      ...this.lists,
      picked: frozen(coded.pick),
      where: frozen(coded.where),
      groups: new Map([...sorted_map(coded.group)].map(([v, texts]) => [v, groups_of(v, texts)])),
      unit: this.single.get("unit") ?? "",
      view: this.view(),
    });
  }

  view() {
    const { single, coded } = this;
    return new View({
      show: one_of("show", single.get("show") ?? "count", SHOWS),
      totals: one_of("totals", single.get("totals") ?? "1", ["0", "1"]) === "1",
      sort: single.get("sort") ?? "",
      chart: one_of("chart", single.get("chart") ?? "none", CHARTS),
      layer: new Map([...sorted_map(coded.layer)].map(([v, codes]) => [v, codes[codes.length - 1]])),
      folded: frozen(coded.fold),
    });
  }
}

/** @param {string} name @param {Codes} by_variable @returns {Parameter[]} */
function code_parameters(name, by_variable) {
  return [...sorted_map(by_variable)].flatMap(
    ([v, codes]) => codes.map((code) => /** @type {Parameter} */ ([`${name}.${v}`, code])),
  );
}

/** Codes by variable, each once and in one order. @param {Codes} coded @returns {Codes} */
function frozen(coded) {
  const kept = [...sorted_map(coded)].map(
    ([v, codes]) => /** @type {[string, string[]]} */ ([v, sorted(new Set(codes.filter(Boolean)))]),
  );
  return new Map(kept.filter(([, codes]) => codes.length > 0));
}

/** @param {string} variable @param {string[]} texts @returns {Codes} */
function groups_of(variable, texts) {
  /** @type {Codes} */
  const found = new Map();
  for (const text of texts) {
    const [written, ...codes] = text.split(SEPARATOR);
    const label = strip(written.replace(SPACES, " ").replace(UNSEEN, ""));
    if (!label || codes.length === 0 || found.has(label)) {
      const allowed = `group.${variable}=LABEL${SEPARATOR}CODE${SEPARATOR}CODE, each label once.`;
      throw new Refusal("unreadable_group", `A group of ${repr(variable)} cannot be read.`, allowed);
    }
    found.set(label, sorted(new Set(codes)));
  }
  return found;
}
