// A release as a labelled array, one axis for each variable: `release/cube.py`.

import { drop_float_noise } from "./numbers.js";
import { sorted } from "./strings.js";

/** @typedef {import("./statement.js").Statement} Statement */

export const ABSENT = -1;
export const STATUS = { published: 0, suppressed: 1, structural_zero: 2, below_threshold: 3, decimal: 4 };
/** @param {number} status */
export const is_hidden = (status) => status === STATUS.suppressed || status === STATUS.below_threshold;

/** A code, its label, how deep it stands (the total has depth 0), and whether others stand under it. */
export class CubeEntry {
  /** @param {string} code @param {string} label @param {number} depth @param {boolean} is_sum */
  constructor(code, label, depth, is_sum) {
    this.code = code;
    this.label = label;
    this.depth = depth;
    this.is_sum = is_sum;
  }
  get is_total() {
    return this.depth === 0;
  }
  get shows_code() {
    return this.label !== this.code && !this.is_total;
  }
  get fields() {
    return [this.code, this.label, this.depth, this.is_sum];
  }
}

/** A variable of a cube: its name, its label, and its entries in reading order. */
export class CubeAxis {
  /** @param {string} name @param {string} label @param {CubeEntry[]} entries */
  constructor(name, label, entries) {
    this.name = name;
    this.label = label;
    this.entries = entries;
    this.codes = entries.map((entry) => entry.code);
    /** @type {Map<string, number> | null} */
    this.places = null;
  }
  get length() {
    return this.entries.length;
  }
  /** The place of the total, where it is among the entries. */
  get total() {
    const found = this.entries.findIndex((entry) => entry.is_total);
    return found < 0 ? null : found;
  }
  /** The place of a code, the first where a group has the name of another entry. @param {string} code */
  place(code) {
    this.places ??= new Map(this.codes.map((one, k) => /** @type {const} */ ([one, k])).reverse());
    const found = this.places.get(code);
    if (found === undefined) throw new Error(`${this.name} has no code ${code}`);
    return found;
  }
}

/** @param {number[]} sizes */
export const product = (sizes) => sizes.reduce((made, n) => made * n, 1);

/** Released values by the codes of their variables; row-major. */
export class Cube {
  /**
   * @param {CubeAxis[]} axes @param {Float64Array} values @param {Int8Array} status
   * @param {{unit: string, statement: Statement, is_integer: boolean}} told
   */
  constructor(axes, values, status, told) {
    this.axes = axes;
    this.values = values;
    this.status = status;
    this.unit = told.unit;
    this.statement = told.statement;
    this.is_integer = told.is_integer;
  }

  /** @param {Partial<Cube>} parts */
  changed(parts) {
    const { axes, values, status, ...told } = { ...this, ...parts };
    return new Cube(axes, values, status, told);
  }

  /**
   * The cube with sums of decimals as they were meant; whole numbers are as they are.
   * @param {boolean} [as_largest] See `drop_float_noise`.
   */
  without_noise(as_largest = false) {
    return this.is_integer
      ? this
      : this.changed({ values: Float64Array.from(drop_float_noise([...this.values], as_largest)) });
  }

  get names() {
    return this.axes.map((axis) => axis.name);
  }
  get shape() {
    return this.axes.map((axis) => axis.length);
  }
  /** Which cells show a value. */
  get is_shown() {
    return Uint8Array.from(this.status, (status) => (status !== ABSENT && !is_hidden(status) ? 1 : 0));
  }
  /** @param {string} name */
  axis(name) {
    return this.axes[this.dimension(name)];
  }
  /** @param {string} name */
  dimension(name) {
    const found = this.names.indexOf(name);
    if (found < 0) throw new Error(`no variable ${name}`);
    return found;
  }

  /** The same values, taken from other places. @param {CubeAxis[]} axes @param {ArrayLike<number>} places */
  taken(axes, places) {
    const values = Float64Array.from(places, (k) => this.values[k]);
    return this.changed({ axes, values, status: Int8Array.from(places, (k) => this.status[k]) });
  }

  /** @param {string[]} names */
  reorder(names) {
    const order = names.map((name) => this.dimension(name));
    return this.taken(order.map((k) => this.axes[k]), transposed(this.shape, order));
  }

  /**
   * Only the entries of one variable that have these codes, in the order of the cube.
   * @param {string} name @param {string[]} codes
   */
  select(name, codes) {
    const axis = this.axis(name);
    return this.at_places(name, sorted(new Set(codes.map((code) => axis.place(code)))));
  }

  /** @param {string} name @param {number[]} places */
  at_places(name, places) {
    const dimension = this.dimension(name);
    const axis = this.axes[dimension];
    const axes = this.with_axis(name, places.map((k) => axis.entries[k]));
    return this.taken(axes, chosen(this.shape, dimension, places));
  }

  /** @param {string} name @param {CubeEntry[]} entries */
  with_axis(name, entries) {
    return this.axes.map((axis) => (axis.name === name ? new CubeAxis(axis.name, axis.label, entries) : axis));
  }
  /** @param {string} name @param {CubeEntry[]} entries */
  with_entries(name, entries) {
    return this.changed({ axes: this.with_axis(name, entries) });
  }
  /** @param {string[]} labels */
  with_labels(labels) {
    return this.changed({ axes: this.axes.map((axis, k) => new CubeAxis(axis.name, labels[k], axis.entries)) });
  }

  /**
   * One more entry of a variable, whose cells another cube has.
   * @param {string} name @param {number} place @param {CubeEntry} entry @param {Cube} cells
   */
  with_slice(name, place, entry, cells) {
    const dimension = this.dimension(name);
    const { entries } = this.axes[dimension];
    const axes = this.with_axis(name, [...entries.slice(0, place), entry, ...entries.slice(place)]);
    const shape = axes.map((axis) => axis.length);
    const made = this.changed(
      { axes, values: new Float64Array(product(shape)), status: new Int8Array(product(shape)) },
    );
    const others = [...axes[dimension].entries.keys()].filter((k) => k !== place);
    chosen(shape, dimension, [place]).forEach((to, k) => put(made, to, cells, k));
    chosen(shape, dimension, others).forEach((to, k) => put(made, to, this, k));
    return made;
  }

  /** A slice along a variable whose cells can never occur. @param {string} name */
  nobody(name) {
    const axes = this.axes.filter((axis) => axis.name !== name);
    const n = product(axes.map((axis) => axis.length));
    return this.changed({ axes, values: new Float64Array(n), status: new Int8Array(n).fill(STATUS.structural_zero) });
  }

  /** The slice at one code of a variable. @param {string} name @param {string} code */
  at(name, code) {
    const dimension = this.dimension(name);
    return this.taken(
      this.axes.filter((axis) => axis.name !== name),
      chosen(this.shape, dimension, [this.axes[dimension].place(code)]),
    );
  }

  /**
   * The sum over the cells with these codes of a variable, which then is gone.
   * @param {string} name @param {string[]} codes
   */
  sum_over(name, codes) {
    const made = this.sums(name, [codes]);
    return made.changed({ axes: this.axes.filter((axis) => axis.name !== name) });
  }

  /**
   * The total of a variable and groups of its codes, by the groups' labels.
   * @param {string} name @param {Map<string, string[]>} groups
   */
  group(name, groups) {
    const axis = this.axis(name);
    const start = axis.total === null ? [] : [axis.entries[axis.total]];
    const made = [...groups.keys()].map((label) => new CubeEntry(label, label, 1, false));
    const parts = [...start.map((entry) => [entry.code]), ...groups.values()];
    return this.sums(name, parts).changed({ axes: this.with_axis(name, [...start, ...made]) });
  }

  /** Each value in per cent of the released one at the total of these variables. @param {string[]} over */
  shares(over) {
    const { shape, is_shown } = this;
    const strides = strides_of(shape);
    const at = over.map(
      (name) => ({ dimension: this.dimension(name), total: /** @type {number} */ (this.axis(name).total) }),
    );
    const values = Float64Array.from(this.values, (value, k) => {
      let base = k;
      for (const { dimension, total } of at) {
        const place = Math.floor(k / strides[dimension]) % shape[dimension];
        base += (total - place) * strides[dimension];
      }
      return is_shown[base] && this.values[base] !== 0 ? (100 * value) / this.values[base] : NaN;
    });
    return this.changed({ values, is_integer: false });
  }

  /**
   * Sums over sets of codes; what holds a hidden or absent part is itself one.
   * @param {string} name @param {string[][]} parts
   */
  sums(name, parts) {
    const dimension = this.dimension(name);
    const axis = this.axes[dimension];
    const { shape } = this;
    const inner = product(shape.slice(dimension + 1));
    const outer = product(shape.slice(0, dimension));
    const places = parts.map((codes) => codes.map((code) => axis.place(code)));
    const values = new Float64Array(outer * parts.length * inner);
    const status = new Int8Array(values.length);
    let to = 0;
    for (let o = 0; o < outer; o++) {
      for (const part of places) {
        for (let i = 0; i < inner; i++, to++) {
          const cells = part.map((place) => (o * axis.length + place) * inner + i);
          status[to] = status_of_sum(cells.map((k) => this.status[k]));
          for (const k of cells) values[to] += this.status[k] === STATUS.structural_zero ? 0 : this.values[k];
        }
      }
    }
    return this.changed({ values, status });
  }
}

/** @param {Cube} made @param {number} to @param {Cube} from @param {number} k */
function put(made, to, from, k) {
  made.values[to] = from.values[k];
  made.status[to] = from.status[k];
}

/** @param {number[]} parts */
function status_of_sum(parts) {
  if (parts.includes(ABSENT)) return ABSENT;
  if (parts.some(is_hidden)) return STATUS.suppressed;
  const found = Math.max(...parts); // impossible cells add nothing
  return found === STATUS.structural_zero && parts.some((status) => status !== found) ? STATUS.published : found;
}

/** @param {number[]} shape */
export function strides_of(shape) {
  return shape.map((_, k) => product(shape.slice(k + 1)));
}

/**
 * The places of an array at some places of one dimension, in its order.
 * @param {number[]} shape @param {number} dimension @param {number[]} places
 */
function chosen(shape, dimension, places) {
  const inner = product(shape.slice(dimension + 1));
  const outer = product(shape.slice(0, dimension));
  const found = new Float64Array(outer * places.length * inner);
  let to = 0;
  for (let o = 0; o < outer; o++) {
    for (const place of places) {
      const start = (o * shape[dimension] + place) * inner;
      for (let i = 0; i < inner; i++) found[to++] = start + i;
    }
  }
  return found;
}

/** The places of an array with its dimensions in another order. @param {number[]} shape @param {number[]} order */
function transposed(shape, order) {
  const strides = strides_of(shape);
  let found = [0];
  for (const k of order) found = found.flatMap(
    (start) => Array.from({ length: shape[k] }, (_, place) => start + place * strides[k]),
  );
  return found;
}

/**
 * For each entry, in reading order, the place of the one it stands under; nothing under the total unless `of_total`.
 * @param {CubeEntry[]} entries @param {boolean} [of_total] @returns {(number | null)[]}
 */
export function parents(entries, of_total = false) {
  /** @type {number[]} */
  const above = [];
  return entries.map((entry, place) => {
    while (above.length > 0 && entries[above[above.length - 1]].depth >= entry.depth) above.pop();
    const found = above.length > 0 ? above[above.length - 1] : null;
    if (of_total || !entry.is_total) above.push(place);
    return found;
  });
}
