// Crossings from cell files: sums of their slots along each variable.

import { Cube, product, STATUS } from "./cube.js";

/** @typedef {import("./cube.js").CubeAxis} CubeAxis */
/** @typedef {import("./variables.js").DetailedVariable} DetailedVariable */
/** @typedef {{values: Float64Array, possible: Uint8Array | null}} Slots */

const MARK = "DCL1";
const KINDS = /** @type {Record<number, any>} */ ({ 1: Int8Array, 2: Int16Array, 4: Int32Array, 8: Float64Array });
const HEAD = 8;

/**
 * A cell file's values, and which combinations can occur.
 * @param {Uint8Array} bytes @param {number} n @returns {Slots}
 */
export function read_cells(bytes, n) {
  const [kind, has_bits] = [bytes[4], bytes[5]];
  const is_ours = new TextDecoder("latin1").decode(bytes.slice(0, 4)) === MARK && kind in KINDS;
  if (!is_ours || bytes.length !== HEAD + kind * n + (has_bits ? Math.ceil(n / 8) : 0)) {
    throw new Error("a cell file has another form than its variables");
  }
  const end = HEAD + kind * n;
  const values = Float64Array.from(new KINDS[kind](bytes.slice(HEAD, end).buffer));
  const possible = has_bits ? Uint8Array.from({ length: n }, (_, k) => (bytes[end + (k >> 3)] >> (k & 7)) & 1) : null;
  return { values, possible };
}

/**
 * For each entry of a variable the slots that it is the sum of.
 * @param {DetailedVariable} asked @returns {number[][]}
 */
export function slots_of(asked) {
  const { detail, variable } = asked;
  if (detail.slots === null) return detail.entries.map((entry) => [...asked.leaves([entry.code])]);
  const place = new Map(detail.slots.map((code, k) => [code, k]));
  const all = Array.from({ length: size_of(asked) }, (_, k) => k);
  return detail.entries.map(
    (entry) => (variable.axis.total_codes.includes(entry.code) ? all : [/** @type {number} */ (place.get(entry.code))]),
  );
}

/** How many slots a variable has in the file of its detail. @param {DetailedVariable} asked */
export function size_of(asked) {
  const { detail, variable } = asked;
  return detail.slots === null ? variable.axis.leaves.length : detail.slots.length + Number(detail.leaves_out);
}

/**
 * Sums along one dimension.
 * @template {Float64Array | Uint8Array} T
 * @param {T} values @param {number[]} shape @param {number} dimension @param {number[][]} slots
 * @param {(sum: number, value: number) => number} join @returns {T}
 */
function collapsed(values, shape, dimension, slots, join) {
  const inner = product(shape.slice(dimension + 1));
  const outer = product(shape.slice(0, dimension));
  const made = /** @type {T} */ (new /** @type {any} */ (values.constructor)(outer * slots.length * inner));
  for (let o = 0; o < outer; o++) {
    slots.forEach((places, e) => {
      const to = (o * slots.length + e) * inner;
      for (const place of places) {
        const from = (o * shape[dimension] + place) * inner;
        for (let i = 0; i < inner; i++) made[to + i] = join(made[to + i], values[from + i]);
      }
    });
  }
  return made;
}

const sum = (/** @type {number} */ one, /** @type {number} */ other) => one + other;
const either = (/** @type {number} */ one, /** @type {number} */ other) => one | other;

/**
 * Slots as the entries of some variables, each the sum of its own.
 * @param {Slots} slots @param {number[]} sizes @param {number[][][]} parts @returns {Slots}
 */
export function summed(slots, sizes, parts) {
  const shape = [...sizes];
  let { values, possible } = slots;
  if (possible) values = values.map((value, k) => (/** @type {Uint8Array} */ (possible)[k] ? value : 0));
  parts.forEach((entries, dimension) => {
    values = collapsed(values, shape, dimension, entries, sum);
    possible = possible && collapsed(possible, shape, dimension, entries, either);
    shape[dimension] = entries.length;
  });
  return { values, possible };
}

/**
 * The crossing of some details as a cube.
 * @param {Slots} slots Their entries, row-major. @param {CubeAxis[]} axes
 * @param {{unit: string, statement: any, is_integer: boolean}} told
 */
export function cube_of({ values, possible }, axes, told) {
  const status = Int8Array.from(
    values,
    (_, k) => (possible && !possible[k] ? STATUS.structural_zero : STATUS.published),
  );
  return new Cube(axes, values, status, told).without_noise();
}

/**
 * The cube without codes that can occur with no others.
 * @param {Cube} cube @param {DetailedVariable[]} asked @param {number[][]} never Slots, by variable.
 */
export function without_never(cube, asked, never) {
  asked.forEach((one, k) => {
    const lost = new Set(never[k]);
    const kept = slots_of(one).flatMap(
      (slots, e) => (slots.every((slot) => lost.has(slot)) ? [] : [one.entries[e].code]),
    );
    if (lost.size > 0) cube = cube.select(one.name, kept);
  });
  return cube;
}
