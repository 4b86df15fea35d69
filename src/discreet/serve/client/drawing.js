// What charts are drawn from: a table's figures, colours, and elements of SVG (`serve/web/drawing.py`).

import { STATUS } from "./cube.js";
import { leaves } from "./grid.js";
import { decimals_of, format_fixed, power_of_ten, round_even, shortest_digits } from "./numbers.js";
import { compare_text, escape, size, strip_end } from "./strings.js";

/** @typedef {import("./cube.js").CubeAxis} CubeAxis */
/** @typedef {import("./cube.js").CubeEntry} CubeEntry */
/** @typedef {import("./layout.js").TableLayout} TableLayout */
/** @typedef {import("./numbers.js").Numbers} Numbers */
/** @typedef {Record<string, string | number | null>} Attributes */

const JOINED = " · ";
export const WHITE = "#ffffff";
const LEAST_CONTRAST = 4.5;
export const WIDTH = 420;
export const FONT = 13;
export const LINE = 14;
export const SLANTED = 110;
const CHARACTER = 7.3; // mean width of a character at that size
const WIDE = "%mwMW";
export const [INK, SOFT, GRID] = ["#1a242d", "#51606d", "#dfe5e9"];
const OTHER_COLOURS = ["#c65d00", "#3b9a8f", "#6a2c7d", "#8f7a00", "#5c5c5c"];
export const DASHES = ["", "7 4", "2 3", "10 3 2 3", "5 2", "1 4"];
export const MARKERS = ["circle", "square", "diamond", "triangle", "ring", "cross"];
export const MOST_SERIES = 6;
const TILES = [
  "",
  "M0 8 8 0M-2 2 2 -2M6 10 10 6",
  "M2 2h2v2h-2zM6 6h2v2h-2z",
  "M0 2h8M0 6h8",
  "M2 0v8M6 0v8",
  "M0 0 8 8M0 8 8 0",
];

/**
 * What is drawn: categories × series, not a number where no value is shown.
 * @typedef {{categories: string[], series: string[], values: number[][], title: string, numbers: Numbers,
 *   decimals: number, description: string, is_share: boolean, accent: string, n_rows: number}} Drawable
 */
export class ChartData {
  /** @param {Drawable} told */
  constructor(told) {
    this.told = told;
    this.categories = told.categories;
    this.series = told.series;
    this.values = told.values;
    this.n_rows = told.n_rows;
    /** The largest value that is shown; zero where there is none. */
    this.largest = told.values.flat().reduce((most, v) => (Number.isFinite(v) && v > most ? v : most), 0);
  }

  /** @param {Partial<Drawable>} parts */
  changed(parts) {
    return new ChartData({ ...this.told, ...parts });
  }

  /** A category and a series, where it has a name. @param {number} k @param {number} s @param {string} [between] */
  cell_name(k, s, between = ": ") {
    return [this.categories[k], this.series[s]].filter(Boolean).join(between);
  }

  /** What a pointer shows over a value. @param {number} k @param {number} s */
  hint(k, s) {
    return `${this.cell_name(k, s)}: ${this.format(this.values[k][s])}`;
  }

  /** A value for readers. @param {number} value @param {number} [decimals] */
  format(value, decimals = this.told.decimals) {
    const { numbers, is_share } = this.told;
    if (Number.isNaN(value)) return "–";
    return is_share ? numbers.in_percent(value, decimals) : numbers.format(value, decimals);
  }

  /** A value on an axis. @param {number} value @param {number} step */
  tick(value, step) {
    return this.format(value, step >= 1 ? 0 : step >= 0.1 ? 1 : 2);
  }

  /** Categories and series that show some value. @param {boolean} has_gaps Whether those between others stay. */
  with_figures(has_gaps) {
    const finite = this.values.map((line) => line.map(Number.isFinite));
    if (finite.every((line) => line.every(Boolean))) return this;
    let rows = places_of(finite.map((line) => line.some(Boolean)));
    const columns = places_of(this.series.map((_, s) => finite.some((line) => line[s])));
    if (has_gaps && rows.length) {
      const first = rows[0];
      rows = Array.from({ length: rows[rows.length - 1] - first + 1 }, (_, k) => first + k);
    }
    return this.changed({
      categories: rows.map((k) => this.categories[k]),
      series: columns.map((s) => this.series[s]),
      values: rows.map((k) => columns.map((s) => this.values[k][s])),
    });
  }

  /**
   * The data without categories and series beyond so many.
   * @param {number} most_categories @param {number} most_series
   */
  limit(most_categories, most_series) {
    return this.changed({
      categories: this.categories.slice(0, most_categories),
      series: this.series.slice(0, most_series),
      values: this.values.slice(0, most_categories).map((line) => line.slice(0, most_series)),
    });
  }
}

/** @param {boolean[]} marks */
const places_of = (marks) => marks.flatMap((mark, k) => (mark ? [k] : []));

/**
 * What a chart shows of a table: what sums up others that are shown is left out.
 * @param {TableLayout} layout @param {Numbers} numbers @param {{title: string, is_share: boolean}} told
 */
export function chart_data(layout, numbers, { title, is_share }) {
  const rows = finest(layout.rows, layout.row_axes);
  const columns = finest(layout.columns, layout.column_axes);
  const { is_shown, status } = layout;
  const shown = Array.from(layout.values, (value, k) =>
    is_shown[k] && status[k] !== STATUS.structural_zero ? value : NaN,
  );
  const width = layout.columns.length;
  return new ChartData({
    categories: rows.map((k) => joined_label(layout.rows[k])),
    series: columns.map((k) => joined_label(layout.columns[k])),
    values: rows.map((r) => columns.map((c) => shown[r * width + c])),
    title,
    numbers,
    decimals: is_share ? 1 : decimals_of(shown),
    description: "",
    is_share,
    accent: "#0b5563",
    n_rows: layout.row_axes.length,
  });
}

/** The rows that sum up no other one. @param {CubeEntry[][]} rows @param {CubeAxis[]} axes */
function finest(rows, axes) {
  const kept = axes.map((axis) => {
    const is_leaf = leaves(axis.entries);
    return new Set(axis.codes.filter((_, k) => is_leaf[k]));
  });
  return places_of(rows.map((entries) => entries.every((entry, k) => kept[k].has(entry.code))));
}

/** @param {CubeEntry[]} entries */
const joined_label = (entries) => entries.map((entry) => entry.label).join(JOINED);

/** The colour, made darker until it can be read on white, and white on it. @param {string} colour */
export function readable(colour) {
  for (let step = 0; step <= 20; step++) {
    const found = mix(colour, "#000000", step / 20);
    if (contrast(found, mix(found, WHITE, 0.92)) >= LEAST_CONTRAST) return found;
  }
  return "#000000";
}

/** A colour with a share of another one. @param {string} colour @param {string} other @param {number} share */
export function mix(colour, other, share) {
  const to = red_green_blue(other);
  const mixed = red_green_blue(colour).map((from, k) => round_even(from + (to[k] - from) * share));
  return `#${mixed.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

/** The contrast of two colours as WCAG defines it. @param {string} one @param {string} other */
function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

/** @param {string} colour */
function luminance(colour) {
  const parts = red_green_blue(colour).map((part) => part / 255);
  const linear = parts.map((p) => (p <= 0.04045 ? p / 12.92 : ((p + 0.055) / 1.055) ** 2.4));
  return [0.2126, 0.7152, 0.0722].reduce((sum, weight, k) => sum + weight * linear[k], 0);
}

/** @param {string} colour */
function red_green_blue(colour) {
  const digits = colour.replace("#", "");
  return [0, 2, 4].map((k) => parseInt(digits.slice(k, k + 2), 16));
}

/**
 * An element; `stroke_width` stands for `stroke-width`. What is inside is markup already.
 * @param {string} name @param {Attributes} attributes @param {...string} inside
 */
export function tag(name, attributes, ...inside) {
  const given = Object.entries(attributes).filter(([, value]) => value !== null);
  const texts = given.map(([key, value]) => ` ${key.replaceAll("_", "-")}="${attribute_text(value)}"`);
  const opened = `<${name}${texts.join("")}`;
  return inside.length ? `${opened}>${inside.join("")}</${name}>` : `${opened}/>`;
}

/**
 * A line of text; its baseline is at `y`.
 * @param {number} x @param {number} y @param {string} said @param {Attributes} [attributes]
 */
export function text_at(x, y, said, attributes = {}) {
  return tag("text", { x, y, ...attributes }, escape(said));
}

/**
 * A line of text that is turned, cut where it would be longer than `SLANTED`.
 * @param {number} x @param {number} y @param {string} said @param {number} angle @param {Attributes} [attributes]
 */
export function slanted_text(x, y, said, angle, attributes = {}) {
  const turn = `rotate(${angle} ${format_fixed(x, 1)} ${format_fixed(y, 1)})`;
  return text_at(x, y, shorten(said, SLANTED), { transform: turn, ...attributes });
}

/** @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 */
export const straight_line = (x1, y1, x2, y2) => tag("line", { x1, y1, x2, y2, stroke: GRID });

/**
 * A rectangle; what is inside is its tooltip.
 * @param {[number, number, number, number]} place @param {Attributes} attributes @param {...string} inside
 */
export function rectangle([x, y, width, height], attributes, ...inside) {
  return tag("rect", { x, y, width, height, ...attributes }, ...inside);
}

/** What a pointer shows over an element. @param {string} said */
export const tooltip = (said) => tag("title", {}, escape(said));

/**
 * A whole chart with its name and its description.
 * @param {ChartData} data @param {number} height @param {string[]} parts
 */
export function svg_document(data, height, parts) {
  const attributes = {
    xmlns: "http://www.w3.org/2000/svg",
    viewBox: `0 0 ${attribute_text(WIDTH)} ${attribute_text(height)}`,
    role: "img",
    aria_labelledby: "chart-title chart-description",
    font_family: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif",
    font_size: FONT,
    fill: INK,
  };
  const { title, description } = data.told;
  const named = [
    tag("title", { id: "chart-title" }, escape(title)),
    tag("desc", { id: "chart-description" }, escape(description)),
  ];
  return tag("svg", attributes, ...named, ...parts);
}

/** About how wide a text is. @param {string} said @param {number} [font] */
export function width_of(said, font = FONT) {
  const wide = [...said].filter((sign) => WIDE.includes(sign)).length;
  return ((size(said) + 0.6 * wide) * CHARACTER * font) / FONT;
}

/** A text that is cut where it would be wider. @param {string} said @param {number} width */
function shorten(said, width) {
  return window_of([...said], 0, Math.max(Math.trunc(width / ((CHARACTER * FONT) / FONT)), 2));
}

/**
 * Names that have room, each cut where it differs from those that begin alike.
 * @param {string[]} names @param {number} width
 */
export function distinct_names(names, width) {
  return tell_apart(names.map((name) => [...name]), Math.max(Math.trunc(width / CHARACTER), 4), 0);
}

/**
 * The names from a place on; where several then read alike, from the place where they part.
 * @param {string[][]} names @param {number} most @param {number} start @returns {string[]}
 */
function tell_apart(names, most, start) {
  const shown = names.map((name) => window_of(name, start, most));
  /** @type {Map<string, number[]>} */
  const groups = new Map();
  shown.forEach((text, k) => groups.set(text, [...(groups.get(text) ?? []), k]));
  for (const places of groups.values()) {
    const alike = places.map((k) => names[k]);
    const parting = common_start(alike);
    if (new Set(alike.map((name) => name.join(""))).size < 2 || parting <= start) continue;
    const word = alike[0].lastIndexOf(" ", parting - 1) + 1; // a name is cut between words if it can be
    let begin = parting - word < Math.floor(most / 2) ? word : parting - Math.floor(most / 2);
    const room = Math.max(...alike.map((name) => name.length)) - most + 1; // from here on they are shown to their ends
    begin = Math.min(begin, alike[0].indexOf(" ", Math.max(room, start)) + 1 || begin);
    const apart = tell_apart(alike, most, Math.max(begin, start + 1));
    places.forEach((place, k) => (shown[place] = apart[k]));
  }
  return shown;
}

/** With how many signs all names begin. @param {string[][]} names */
function common_start(names) {
  const ordered = names.map((name) => name.join("")).sort(compare_text);
  const [first, last] = [[...ordered[0]], [...ordered[ordered.length - 1]]];
  const parting = first.findIndex((sign, k) => sign !== last[k]);
  return parting < 0 ? first.length : parting;
}

/** @param {string[]} name @param {number} start @param {number} most */
function window_of(name, start, most) {
  const text = start ? ["…", ...name.slice(start)] : name;
  return text.length <= most ? text.join("") : `${strip_end(text.slice(0, most - 1).join(""))}…`;
}

/** A text in one line, or in two that each have room as far as possible. @param {string} said @param {number} width */
function lines_of(said, width) {
  if (width_of(said) <= width || !said.includes(" ")) return [shorten(said, width)];
  const words = said.split(" ");
  let end = 1;
  for (let k = 1; k < words.length; k++) if (width_of(words.slice(0, k).join(" ")) <= width) end = k;
  const first = words.slice(0, end).join(" ").replace(/ ·$/, "");
  return [first, words.slice(end).join(" ")].filter(Boolean).map((part) => shorten(part, width));
}

/** The height that names need, each in one line or two. @param {string[]} names @param {number} width */
export function name_height(names, width) {
  return Math.max(...names.map((name) => lines_of(name, width).length)) * LINE + 4;
}

/**
 * The name of a row, which ends at `x`; in two lines where one has no room.
 * @param {number} x @param {number} middle @param {string} said @param {number} width
 */
export function row_label(x, middle, said, width) {
  const lines = lines_of(said, width);
  const top = middle + FONT * 0.35 - ((lines.length - 1) * LINE) / 2;
  return lines.map((line, k) => text_at(x, top + k * LINE, line, { text_anchor: "end" })).join("");
}

/** @param {string | number | null} value */
function attribute_text(value) {
  if (typeof value !== "number") return escape(String(value));
  return format_fixed(value, 2).replace(/0+$/, "").replace(/\.$/, "");
}

/** The colours of the series, the accent first. @param {ChartData} data */
export const series_colours = (data) => [data.told.accent, ...OTHER_COLOURS];

/** For each series its fill, and the patterns these need. @param {ChartData} data @returns {[string[], string[]]} */
export function series_fills(data) {
  const shades = series_colours(data).slice(0, data.series.length);
  const patterns = shades.slice(1).map((shade, k) => stroke_pattern(k + 1, shade));
  const fills = shades.map((shade, k) => (k === 0 ? shade : `url(#pattern-${k})`));
  return [fills, patterns.length ? [tag("defs", {}, ...patterns)] : []];
}

/**
 * Names of the series in lines, each behind its fill; and how high they stand.
 * @param {ChartData} data @param {string[]} looks @returns {[string[], number]}
 */
export function series_legend(data, looks) {
  const parts = [];
  let [x, top] = [0, 0];
  for (const [k, shown] of distinct_names(data.series, WIDTH - 30).entries()) {
    if (x > 0 && x + 20 + width_of(shown) > WIDTH) [x, top] = [0, top + 20];
    parts.push(rectangle([x, top + 2, 13, 13], { fill: looks[k] }));
    parts.push(text_at(x + 19, top + FONT, shown));
    x += 19 + width_of(shown) + 18;
  }
  return [parts, top + 28];
}

/** @param {number} k @param {string} colour */
function stroke_pattern(k, colour) {
  const stroke = { d: TILES[k], stroke: "#fff", stroke_width: 1.3, stroke_opacity: 0.6, fill: "none" };
  return tag(
    "pattern",
    { id: `pattern-${k}`, width: 8, height: 8, patternUnits: "userSpaceOnUse" },
    rectangle([0, 0, 8, 8], { fill: colour }),
    tag("path", stroke),
  );
}

/** Round numbers from zero to just beyond the largest value. @param {number} largest @param {number} [about] */
export function nice_ticks(largest, about = 4) {
  if (!(largest > 0)) return [0, 1];
  const rough = largest / about;
  const power = power_of_ten(shortest_digits(rough).exponent);
  const found = [1, 2, 2.5, 5, 10].find((k) => power * k >= rough * (1 - 1e-9)) ?? 10;
  const step = largest >= about && power * found < 1 ? 1 : power * found;
  return Array.from({ length: Math.ceil(largest / step - 1e-9) + 1 }, (_, k) => step * k);
}
