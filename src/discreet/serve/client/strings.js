// Texts as Python reads, orders and quotes them.

// What `str.isspace` calls a space; `\s` has U+FEFF more and the separators of ASCII less.
const SPACES = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const EDGES = new RegExp(`^[${SPACES}]+|[${SPACES}]+$`, "g");
const END = new RegExp(`[${SPACES}]+$`);
const BETWEEN = new RegExp(`[${SPACES}]+`);

/** @type {(text: string) => string} */
export const strip = (text) => text.replace(EDGES, "");
/** @type {(text: string) => string} */
export const strip_end = (text) => text.replace(END, "");
/** `str.split()`. @type {(text: string) => string[]} */
export const words = (text) => text.split(BETWEEN).filter(Boolean);
/** `len(text)`. @type {(text: string) => number} */
export const size = (text) => [...text].length;

/**
 * The order of Python's strings, by code points; that of JavaScript is by UTF-16.
 * @param {string} one
 * @param {string} other
 * @returns {number}
 */
export function compare_text(one, other) {
  const length = Math.min(one.length, other.length);
  for (let k = 0; k < length; k++) {
    if (one[k] !== other[k]) return rank(one.charCodeAt(k)) - rank(other.charCodeAt(k));
  }
  return one.length - other.length;
}

/** Halves of code points beyond U+FFFF come after everything else. @type {(unit: number) => number} */
function rank(unit) {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit;
}

/**
 * `sorted(items, key=key)`; keys are texts, numbers, or lists of them.
 * @template T
 * @param {Iterable<T>} items
 * @param {(item: T) => any} [key]
 * @returns {T[]}
 */
export function sorted(items, key = (item) => item) {
  const pairs = [...items].map((item) => ({ item, by: key(item) }));
  return pairs.sort((one, other) => compare_keys(one.by, other.by)).map(({ item }) => item);
}

/** @type {(one: any, other: any) => number} */
export function compare_keys(one, other) {
  if (typeof one === "string") return compare_text(one, other);
  if (!Array.isArray(one)) return Number(one) - Number(other);
  for (let k = 0; k < Math.min(one.length, other.length); k++) {
    const found = compare_keys(one[k], other[k]);
    if (found) return found;
  }
  return one.length - other.length;
}

/**
 * `str.casefold`.
 * @param {string} text
 * @returns {string}
 */
export function casefold(text) {
  return [...text].map(fold_character).join("");
}

/** @type {(character: string) => string} */
function fold_character(character) {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x80) return character.toLowerCase();
  // Capitals stand for both cases of Cherokee; small letters came to Unicode later.
  if (code >= 0x13a0 && code <= 0x13f5) return character;
  if (code >= 0x13f8 && code <= 0x13fd) return String.fromCodePoint(code - 8);
  if (code >= 0xab70 && code <= 0xabbf) return String.fromCodePoint(code - 0xab70 + 0x13a0);
  if (character === "ı") return character;
  return character === "ẞ" ? "ss" : character.toUpperCase().toLowerCase();
}

/**
 * A name as readers tell it from others: without case, invisible signs and width of spaces.
 * @param {string} name
 * @returns {string}
 */
export function as_read(name) {
  return words(casefold(name.normalize("NFKC")).replace(/\p{Cf}/gu, "")).join(" ");
}

/**
 * `urllib.parse.quote_plus`: a text within a query string.
 * @param {string} text
 * @param {string} [safe] Signs that stay as they are.
 * @returns {string}
 */
export function quote_plus(text, safe = "") {
  return quote(text, `${safe} `).replaceAll(" ", "+");
}

/**
 * `urllib.parse.quote`: a text within a path.
 * @param {string} text
 * @param {string} [safe]
 * @returns {string}
 */
export function quote(text, safe = "/") {
  const escaped = encodeURIComponent(text.toWellFormed ? text.toWellFormed() : text);
  const all = escaped.replace(/[!'()*]/g, (sign) => `%${hexadecimal(sign)}`);
  return all.replace(/%([2-7][0-9A-F])/g, (code, digits) => {
    const sign = String.fromCharCode(parseInt(digits, 16));
    return safe.includes(sign) ? sign : code;
  });
}

/** @type {(sign: string) => string} */
function hexadecimal(sign) {
  return sign.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0");
}

/**
 * `urllib.parse.urlencode`.
 * @param {Iterable<readonly [string, string]>} parameters
 * @param {string} [safe]
 * @returns {string}
 */
export function urlencode(parameters, safe = "") {
  return [...parameters].map(([k, v]) => `${quote_plus(k, safe)}=${quote_plus(v, safe)}`).join("&");
}

/**
 * `urllib.parse.parse_qsl` with blank values.
 * @param {string} query
 * @returns {[string, string][]}
 */
export function parse_query(query) {
  return [...new URLSearchParams(query.replace(/^\?/, "").replace(/^/, "&"))];
}

/** @type {Record<string, string>} */
const SHORT = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\" };

/**
 * `repr` of a text.
 * @param {string} text
 * @returns {string}
 */
export function repr(text) {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const inside = [...text].map((sign) => (sign === mark ? `\\${mark}` : escape_sign(sign)));
  return mark + inside.join("") + mark;
}

/** @type {(sign: string) => string} */
function escape_sign(sign) {
  if (sign in SHORT) return SHORT[sign];
  if (sign === " " || !/[\p{C}\p{Z}]/u.test(sign)) return sign;
  const code = sign.codePointAt(0) ?? 0;
  const [letter, width] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return `\\${letter}${code.toString(16).padStart(Number(width), "0")}`;
}

/** @type {Record<string, string>} */
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&#34;" };

/** `markupsafe.escape`. @type {(text: string) => string} */
export const escape = (text) => text.replace(/[&<>'"]/g, (sign) => ENTITIES[sign]);

/**
 * `str.format` with the fields that our texts have: `{}` and `{name}`.
 * @param {string} text
 * @param {...(string | number | Record<string, string | number>)} given Values in turn, or by name.
 * @returns {string}
 */
export function fill(text, ...given) {
  let place = 0;
  const named = given.find((one) => typeof one === "object") ?? {};
  return text.replace(/\{\{|\}\}|\{(\w*)\}/g, (field, name) => {
    if (name === undefined) return field[0];
    return String(name ? Object(named)[name] : given[place++]);
  });
}
