// Charts beside a table, drawn as SVG: bars, lines, a heat map and an age–sex pyramid (`serve/web/charts.py`).

import {
  chart_data, DASHES, distinct_names, FONT, GRID, INK, MARKERS, MOST_SERIES, name_height, nice_ticks, readable,
  rectangle, row_label, series_colours, series_fills, series_legend, SLANTED, slanted_text, SOFT, straight_line,
  svg_document, tag, text_at, tooltip, WIDTH, width_of,
} from "./drawing.js";
import { format_fixed } from "./numbers.js";
import { Markup } from "./runtime.js";
import { fill } from "./strings.js";
import { caption_of, layers_of, populations_of } from "./wording.js";

/** @typedef {import("./drawing.js").ChartData} ChartData */
/** @typedef {import("./drawing.js").Attributes} Attributes */
/** @typedef {{svg: Markup, note: string}} DrawnChart */
/**
 * What a kind draws, what has room in it, which tables fit it, and whether rows without figures keep their place.
 * @typedef {{draw: (data: ChartData) => string, most_categories: number, most_series: number, most_marks: number,
 *   fits?: (data: ChartData) => boolean, has_gaps?: boolean}} ChartKind
 */

const BAR = 13; // a bar among others; a lone bar is half as high again
const AXIS_FOOT = 26;
const LINES_FOOT = 240;
const LINES_TOP = 10;
const SHADES = ["#f1f5f9", "#d3e3ee", "#a9cbe0", "#6fa8ca", "#3a7fab", "#17557f", "#0a3050"];
const DARK_FROM = 4; // shades on which writing is white
const FIELD_HEIGHT = 24;
const SMALL_FONT = 11;
const KEY_FOOT = 40;
const TWO_LINES = 1.6; // widths of a line that two lines hold, since words do not fill them
const PYRAMID_TOP = 28;

/**
 * The chart that a table's page asks for, if any.
 * @param {import("./answer.js").Answer} answer @param {import("./layout.js").TableLayout} layout @param {any} texts
 * @param {string} accent @returns {DrawnChart | null}
 */
export function chart_of(answer, layout, texts, accent) {
  const { view } = answer.query;
  if (view.chart === "none") return null;
  const said = [caption_of(answer, texts), ...populations_of(answer), ...layers_of(answer)];
  const told = { title: said.join(", "), is_share: view.show !== "count" };
  let data = chart_data(layout, texts.numbers, told).changed({ accent: readable(accent) });
  const is_across = answer.columns.length === 1 && answer.columns[0] === answer.dataset.time;
  if (view.chart === "lines" && is_across && data.categories.length <= MOST_SERIES) data = turned(data);
  return draw_chart(view.chart, data, texts);
}

/** A series is read along time, on whichever side of the table its periods stand. @param {ChartData} data */
function turned(data) {
  const values = data.series.map((_, s) => data.values.map((line) => line[s]));
  return data.changed({ categories: data.series, series: data.categories, values, n_rows: 1 });
}

/**
 * The chart of this name, or what it would need.
 * @param {string} name @param {ChartData} data @param {any} texts @returns {DrawnChart}
 */
export function draw_chart(name, data, texts) {
  const kind = CHARTS[name];
  const said = texts.chart;
  const fits = kind.fits ?? ((/** @type {ChartData} */ one) => one.categories.length > 0);
  const has_gaps = kind.has_gaps ?? false;
  if (!fits(data)) return none(said.needs[name]);
  if (!data.values.flat().some(Number.isFinite)) return none(said.nothing_shown);
  const drawn = data.with_figures(has_gaps);
  const series = Math.min(drawn.series.length, kind.most_series);
  const most = Math.min(kind.most_categories, Math.max(Math.floor(kind.most_marks / Math.max(series, 1)), 1));
  // Rows in front may have figures in later columns only: what is left is looked at again.
  const limited = drawn.limit(most, series).with_figures(has_gaps);
  if (!fits(limited)) return none(said.nothing_shown);
  const described = limited.changed({ description: description(name, limited, texts) });
  const sizes = /** @type {const} */ ([
    ["rows", limited.categories.length, data.categories.length],
    ["columns", limited.series.length, data.series.length],
  ]);
  const left_out = sizes.filter(([, n, m]) => n < m).map(
    ([what, n, m]) => fill(said.left_out, { n, all: texts.count(what, m) }),
  );
  return { svg: new Markup(kind.draw(described)), note: left_out.join(" ") };
}

/** @param {string} note @returns {DrawnChart} */
const none = (note) => ({ svg: new Markup(""), note });

/**
 * The chart in words: how much it shows, and between which values.
 * @param {string} name @param {ChartData} data @param {any} texts
 */
function description(name, data, texts) {
  const flat = data.values.flat();
  const finite = flat.filter((value) => !Number.isNaN(value));
  const width = data.series.length;
  const at = (/** @type {number} */ value) => {
    const place = flat.indexOf(value);
    return data.cell_name(Math.floor(place / width), place % width, ", ");
  };
  const [high, low] = [finite.reduce((a, b) => (b > a ? b : a)), finite.reduce((a, b) => (b < a ? b : a))];
  return fill(texts.chart.description, {
    kind: texts.chart.kinds[name],
    rows: texts.count("rows", data.categories.length),
    columns: texts.count("columns", width),
    most: data.format(high),
    most_at: at(high),
    least: data.format(low),
    least_at: at(low),
  });
}

/** The widest of some names. @param {string[]} names */
const widest = (names) => names.reduce((most, name) => Math.max(most, width_of(name)), 0);

/** The bars, with values behind them where there is one bar for each row. @param {ChartData} data */
function draw_bars(data) {
  const is_lone = data.series.length === 1;
  const [looks, patterns] = series_fills(data);
  const [head, top] = is_lone ? [[], 4] : series_legend(data, looks);
  const left = Math.min(widest(data.categories) + 10, WIDTH * 0.4);
  const thick = is_lone ? BAR * 1.5 : BAR;
  const names = distinct_names(data.categories, TWO_LINES * (left - 10));
  const group = Math.max(thick * data.series.length + (is_lone ? 8 : 10), name_height(names, left - 10));
  const height = top + group * data.categories.length + AXIS_FOOT;
  const ticks = nice_ticks(data.largest);
  const room = is_lone ? width_of(data.format(data.largest)) + 8 : 14;
  const scale = (WIDTH - left - room) / ticks[ticks.length - 1];
  const parts = [...patterns, ...head];
  const told = told_ticks(data, ticks, scale);
  for (const value of ticks) {
    const x = left + value * scale;
    parts.push(straight_line(x, top, x, height - AXIS_FOOT));
    const text_anchor = value === 0 ? "start" : value === ticks[ticks.length - 1] ? "end" : "middle";
    const said = told.get(value);
    if (said) parts.push(text_at(x, height - 8, said, { text_anchor, fill: SOFT }));
  }
  names.forEach((name, k) => {
    const y = top + k * group + (group - thick * data.series.length) / 2;
    const middle = y + (thick * data.series.length) / 2;
    parts.push(row_label(left - 8, middle, name, left - 10));
    data.values[k].forEach((value, s) => {
      const [length, bar_top] = [bar_length(value, scale), y + s * thick];
      parts.push(rectangle([left, bar_top, length, thick - 1.5], { fill: looks[s] }, tooltip(data.hint(k, s))));
      if (!is_lone) return;
      parts.push(text_at(left + length + 6, bar_top + thick * 0.5 + 4, data.format(value), { fill: SOFT }));
    });
  });
  return svg_document(data, height, parts);
}

/**
 * The texts under an axis: each, every second, or those at the ends, as they have room.
 * @param {ChartData} data @param {number[]} ticks @param {number} scale @returns {Map<number, string>}
 */
function told_ticks(data, ticks, scale) {
  const [last, step] = [ticks.length - 1, ticks[1] * scale];
  const needed = 1.5 * width_of(data.tick(ticks[last], ticks[1])) + 6; // the last ends where its line is
  const every = step >= needed ? 1 : 2 * step >= needed ? 2 : last;
  const shown = ticks.filter((_, k) => (last - k) % every === 0 || k === 0);
  return new Map(shown.map((value) => [value, data.tick(value, ticks[1])]));
}

/**
 * A bar for a value; none for one that is negative after noise, or not shown.
 * @param {number} value @param {number} scale
 */
function bar_length(value, scale) {
  const length = value * scale;
  return length > 0 || Object.is(length, -0) ? length : 0;
}

/** The lines; a value that is not shown leaves a gap. @param {ChartData} data */
function draw_lines(data) {
  const ticks = nice_ticks(data.largest, 5);
  const left = widest(ticks.map((value) => data.tick(value, ticks[1]))) + 10;
  const longest_series = widest(data.series);
  let right = longest_series ? Math.min(longest_series + 30, WIDTH * 0.32) : 14;
  const longest = widest(data.categories);
  const n = data.categories.length;
  const is_level = longest + 8 <= ((WIDTH - left) / n) * 2;
  // The last name under the axis stands out to the right of it.
  right = Math.max(right, is_level ? longest / 2 : Math.min(longest, SLANTED) * 0.72);
  const step = (WIDTH - left - right) / (n - 1);
  const [foot, names] = names_under(data, left, step);
  const scale = (LINES_FOOT - LINES_TOP) / ticks[ticks.length - 1];
  /** @type {string[]} */
  const parts = [];
  for (const value of ticks) {
    const y = LINES_FOOT - value * scale;
    parts.push(straight_line(left, y, WIDTH - right, y));
    parts.push(text_at(left - 8, y + 4, data.tick(value, ticks[1]), { text_anchor: "end", fill: SOFT }));
  }
  parts.push(...names, ...data.series.flatMap((_, s) => one_line(data, s, left, step, scale)));
  parts.push(...line_names(data, left + step * (n - 1), scale));
  return svg_document(data, LINES_FOOT + foot, parts);
}

/**
 * Names of the categories, as many as have room; slanted where they are long.
 * @param {ChartData} data @param {number} left @param {number} step @returns {[number, string[]]}
 */
function names_under(data, left, step) {
  const longest = widest(data.categories);
  const is_level = longest + 8 <= step * 2;
  const every = Math.max(1, Math.ceil((is_level ? longest + 8 : 20) / step));
  const shown = distinct_names(data.categories, SLANTED);
  const parts = [];
  for (let k = 0; k < data.categories.length; k += every) {
    const [x, y] = [left + k * step, LINES_FOOT + 18];
    if (is_level) parts.push(text_at(x, y, data.categories[k], { text_anchor: "middle", fill: SOFT }));
    else parts.push(slanted_text(x, y - 4, shown[k], 45, { fill: SOFT }));
  }
  return [is_level ? 28 : Math.min(longest, SLANTED) * 0.72 + 26, parts];
}

/** @param {ChartData} data @param {number} s @param {number} left @param {number} step @param {number} scale */
function one_line(data, s, left, step, scale) {
  const stroke = series_colours(data)[s];
  const points = data.values.map(
    (line, k) => ({ x: left + k * step, y: LINES_FOOT - line[s] * scale, hint: tooltip(data.hint(k, s)) }),
  );
  let [drawn, is_down] = ["", false];
  for (const { x, y } of points) {
    const is_gap = Number.isNaN(y);
    drawn += is_gap ? "" : `${is_down ? "L" : "M"}${format_fixed(x, 1)} ${format_fixed(y, 1)}`;
    is_down = !is_gap;
  }
  const look = { stroke_dasharray: DASHES[s] || null, stroke_linejoin: "round" };
  const path = tag("path", { d: drawn || "M0 0", fill: "none", stroke, stroke_width: 2.5, ...look });
  if (points.length > 30) return [path];
  const shown = points.filter(({ y }) => !Number.isNaN(y));
  return [path, ...shown.map(({ x, y, hint }) => marker(s, x, y, stroke, hint))];
}

/** @param {number} s @param {number} x @param {number} y @param {string} colour @param {string} hint */
function marker(s, x, y, colour, hint) {
  const shape = MARKERS[s];
  const look = { stroke: colour, stroke_width: 1.5 };
  if (shape === "circle" || shape === "ring") {
    return tag("circle", { cx: x, cy: y, r: 3.5, fill: shape === "circle" ? colour : "#fff", ...look }, hint);
  }
  const at = (/** @type {number} */ dx, /** @type {number} */ dy) =>
    `M${format_fixed(x - dx, 1)} ${format_fixed(y - dy, 1)}`;
  const paths = /** @type {Record<string, string>} */ ({
    square: `${at(3.2, 3.2)}h6.4v6.4h-6.4z`,
    diamond: `${at(0, 4.6)}l4.6 4.6-4.6 4.6-4.6-4.6z`,
    triangle: `${at(0, 4.4)}l4.4 7.6h-8.8z`,
    cross: `${at(3.5, 3.5)}l7 7m0-7l-7 7`,
  });
  return tag("path", { d: paths[shape], fill: colour, ...look }, hint);
}

/**
 * The names of the lines beside their last values, moved apart where they would touch.
 * @param {ChartData} data @param {number} x @param {number} scale
 */
function line_names(data, x, scale) {
  if (!data.series.some(Boolean)) return [];
  const ends = data.series.map((_, s) => data.values.map((line) => line[s]).filter(Number.isFinite).pop() ?? 0);
  const order = [...ends.keys()].sort((one, other) => ends[other] - ends[one]);
  const names = distinct_names(data.series, WIDTH - x - 24);
  let lowest = -Infinity;
  return order.flatMap((s) => {
    lowest = Math.max(LINES_FOOT - ends[s] * scale + 4, lowest + 15, LINES_TOP + 4);
    return [marker(s, x + 13, lowest - 4, series_colours(data)[s], ""), text_at(x + 22, lowest, names[s])];
  });
}

/** The fields under the names of the columns, and what the shades stand for. @param {ChartData} data */
function draw_heat(data) {
  const left = Math.min(widest(data.categories) + 10, WIDTH * 0.38);
  const longest = widest(data.series);
  let wide = (WIDTH - left) / data.series.length;
  // slanted names need room beside the last one
  if (longest + 6 > wide) wide = (WIDTH - left - Math.min(longest, SLANTED) * 0.6) / data.series.length;
  const [top, parts] = names_over(data, left, wide);
  const texts = data.values.flat().map((value) => data.format(value));
  const has_room = (widest(texts) * SMALL_FONT) / FONT + 4 <= wide;
  const names = distinct_names(data.categories, TWO_LINES * (left - 10));
  const high = Math.max(FIELD_HEIGHT, name_height(names, left - 10));
  names.forEach((name, k) => {
    const y = top + k * high;
    parts.push(row_label(left - 8, y + high / 2, name, left - 10));
    data.series.forEach((_, s) => parts.push(...field(data, k, s, [left + s * wide, y, wide, high], has_room)));
  });
  const bottom = top + high * data.categories.length;
  parts.push(...shade_key(data, left, bottom));
  return svg_document(data, bottom + KEY_FOOT, parts);
}

/** Which shade stands for a value. @param {number} value @param {number} largest */
function shade_of(value, largest) {
  if (!(largest > 0) || Number.isNaN(value)) return 0;
  return Math.min(Math.max(Math.trunc((value / largest) * SHADES.length), 0), SHADES.length - 1);
}

/** @param {ChartData} data @param {number} left @param {number} wide @returns {[number, string[]]} */
function names_over(data, left, wide) {
  const longest = widest(data.series);
  if (!longest) return [6, []];
  const is_level = longest + 6 <= wide;
  const height = is_level ? 22 : Math.min(longest, SLANTED) * 0.72 + 20;
  const shown = is_level ? data.series : distinct_names(data.series, SLANTED);
  const parts = shown.map((series, s) => {
    const x = left + (s + 0.5) * wide;
    return is_level ? text_at(x, 15, series, { text_anchor: "middle" }) : slanted_text(x, height - 6, series, -45);
  });
  return [height, parts];
}

/**
 * @param {ChartData} data @param {number} k @param {number} s @param {[number, number, number, number]} place
 * @param {boolean} has_room
 */
function field(data, k, s, place, has_room) {
  const value = data.values[k][s];
  const shade = shade_of(value, data.largest);
  const is_empty = Number.isNaN(value);
  const look = { fill: is_empty ? "#fff" : SHADES[shade], stroke: is_empty ? GRID : "#fff" };
  const parts = [rectangle(place, look, tooltip(data.hint(k, s)))];
  if (!has_room) return parts;
  const [x, y, wide, high] = place;
  const ink = shade >= DARK_FROM ? "#fff" : INK;
  const writing = { text_anchor: "middle", fill: ink, pointer_events: "none", font_size: SMALL_FONT };
  return [...parts, text_at(x + wide / 2, y + high / 2 + 4, data.format(value), writing)];
}

/** @param {ChartData} data @param {number} left @param {number} bottom */
function shade_key(data, left, bottom) {
  const wide = (WIDTH - left) / SHADES.length;
  const y = bottom + 10;
  const small = { fill: SOFT, font_size: SMALL_FONT };
  return [
    ...SHADES.map((shade, k) => rectangle([left + k * wide, y, wide, 8], { fill: shade })),
    text_at(left, y + 22, data.format(0), small),
    text_at(WIDTH, y + 22, data.format(data.largest), { ...small, text_anchor: "end" }),
  ];
}

/** The pyramid; the last row is at the top, as ages are drawn. @param {ChartData} data */
function draw_pyramid(data) {
  const n = data.categories.length;
  const high = n <= 40 ? 16 : 8;
  const every = high > 12 ? 1 : 5;
  const middle = Math.min(widest(data.categories.filter((_, k) => k % every === 0)) + 16, WIDTH * 0.34);
  const side = (WIDTH - middle) / 2;
  const ticks = nice_ticks(data.largest, 3);
  const last = ticks[ticks.length - 1];
  const scale = (side - 4) / last;
  const height = PYRAMID_TOP + high * n + AXIS_FOOT;
  const [looks, patterns] = series_fills(data);
  const [left, right] = distinct_names(data.series, side);
  const names = distinct_names(data.categories, middle - 10);
  const parts = [
    ...patterns,
    text_at(side, 16, left, { text_anchor: "end", font_weight: "600" }),
    text_at(WIDTH - side, 16, right, { font_weight: "600" }),
  ];
  const told = told_ticks(data, ticks, scale);
  for (const value of ticks) {
    for (const is_left of [true, false]) {
      const x = is_left ? side - value * scale : WIDTH - side + value * scale;
      const text_anchor = value !== last ? "middle" : is_left ? "start" : "end";
      parts.push(straight_line(x, PYRAMID_TOP - 4, x, height - AXIS_FOOT));
      const said = told.get(value);
      if (said) parts.push(text_at(x, height - 8, said, { text_anchor, fill: SOFT }));
    }
  }
  for (let k = 0; k < n; k++) {
    const place = n - 1 - k;
    const y = PYRAMID_TOP + k * high;
    if (place % every === 0) parts.push(text_at(WIDTH / 2, y + high / 2 + 4, names[place], { text_anchor: "middle" }));
    data.values[place].forEach((value, s) => {
      const length = bar_length(value, scale);
      const x = s === 0 ? side - length : WIDTH - side;
      parts.push(rectangle([x, y + 1, length, high - 2], { fill: looks[s] }, tooltip(data.hint(place, s))));
    });
  }
  return svg_document(data, height, parts);
}

/** @type {Record<string, ChartKind>} */
const CHARTS = {
  bars: { draw: draw_bars, most_categories: 40, most_series: MOST_SERIES, most_marks: 72 },
  lines: {
    draw: draw_lines,
    most_categories: 120,
    most_series: MOST_SERIES,
    most_marks: 720,
    fits: (data) => data.categories.length > 1,
    has_gaps: true,
  },
  heat: { draw: draw_heat, most_categories: 60, most_series: 24, most_marks: 1440 },
  pyramid: {
    draw: draw_pyramid,
    most_categories: 110,
    most_series: 2,
    most_marks: 220,
    fits: (data) => data.series.length === 2 && data.n_rows === 1 && data.categories.length > 1,
  },
};
