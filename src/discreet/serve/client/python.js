// Python's own ways that pages and refusals follow: equality, texts of values, names that are near.

import { casefold, compare_text, repr, size } from "./strings.js";

/** `str(value)`, as templates print it. @param {any} value @returns {string} */
export function as_text(value) {
  if (value === true) return "True";
  if (value === false) return "False";
  return value === null ? "None" : String(value);
}

/** `==` of plain data, mappings and what has `fields`. @param {any} one @param {any} other @returns {boolean} */
export function equal(one, other) {
  if (one === other) return true;
  if (one instanceof Map && other instanceof Map) {
    return one.size === other.size && [...one].every(([key, value]) => other.has(key) && equal(value, other.get(key)));
  }
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((value, k) => equal(value, other[k]));
  }
  return Boolean(one?.fields && other?.fields) && equal(one.fields, other.fields);
}

/** `text[:1].upper() + text[1:]`. @param {string} text */
export function capitalized(text) {
  const [first = "", ...rest] = text;
  return first.toUpperCase() + rest.join("");
}

/** @template T @param {Iterable<[string, T]>} pairs @returns {Map<string, T>} */
export const sorted_map = (pairs) => new Map([...pairs].sort(([one], [other]) => compare_text(one, other)));

/**
 * One sentence that names the nearest known names, or all of them when they are few.
 * @param {string} name @param {string[]} known
 */
export function suggest(name, known) {
  const folded = new Map(known.map((one) => [casefold(one), one]));
  const near = close_matches(casefold(name), [...folded.keys()]).map((one) => /** @type {string} */ (folded.get(one)));
  if (near.length > 0) return `Did you mean ${near.map(repr).join(" or ")}?`;
  if (known.length === 0) return "There are none to choose from.";
  return `Known: ${known.slice(0, 12).map(repr).join(", ")}${known.length > 12 ? ", …" : ""}.`;
}

const LEAST_RATIO = 0.6; // of names that are near

/** `difflib.get_close_matches` with three of them. @param {string} word @param {string[]} options */
function close_matches(word, options) {
  const to = [...word];
  const of_like_length = options.filter((option) => {
    const n = size(option);
    return 2 * Math.min(n, to.length) >= LEAST_RATIO * (n + to.length); // no other can have the ratio
  });
  const scored = of_like_length.map((option) => ({ option, score: ratio([...option], to) })).filter(
    ({ score }) => score >= LEAST_RATIO,
  );
  scored.sort((one, other) => other.score - one.score || compare_text(other.option, one.option));
  return scored.slice(0, 3).map(({ option }) => option);
}

/** `SequenceMatcher(None, one, other).ratio()`. @param {string[]} one @param {string[]} other */
function ratio(one, other) {
  /** @type {Map<string, number[]>} */
  const places = new Map();
  for (const [k, sign] of other.entries()) {
    const at = places.get(sign);
    if (at) at.push(k);
    else places.set(sign, [k]);
  }
  if (other.length >= 200) {
    for (const [sign, at] of [...places]) if (at.length > Math.floor(other.length / 100) + 1) places.delete(sign);
  }
  const total = one.length + other.length;
  return total === 0 ? 1 : (2 * matches(one, other, places, 0, one.length, 0, other.length)) / total;
}

/**
 * Signs in blocks that both have: the longest one, and those to its left and right.
 * @param {string[]} one @param {string[]} other @param {Map<string, number[]>} places
 * @param {number} low @param {number} high @param {number} from @param {number} to @returns {number}
 */
function matches(one, other, places, low, high, from, to) {
  let [best_one, best_other, size] = [low, from, 0];
  /** @type {Map<number, number>} */
  let lengths = new Map();
  for (let k = low; k < high; k++) {
    const next = new Map();
    for (const place of places.get(one[k]) ?? []) {
      if (place < from || place >= to) continue;
      const length = (lengths.get(place - 1) ?? 0) + 1;
      next.set(place, length);
      if (length > size) [best_one, best_other, size] = [k - length + 1, place - length + 1, length];
    }
    lengths = next;
  }
  // Popular signs are no start of a block, but lengthen one.
  while (best_one > low && best_other > from && one[best_one - 1] === other[best_other - 1]) {
    [best_one, best_other, size] = [best_one - 1, best_other - 1, size + 1];
  }
  const has_more = () => best_one + size < high && best_other + size < to;
  while (has_more() && one[best_one + size] === other[best_other + size]) size += 1;
  if (size === 0) return 0;
  const left = matches(one, other, places, low, best_one, from, best_other);
  return size + left + matches(one, other, places, best_one + size, high, best_other + size, to);
}
