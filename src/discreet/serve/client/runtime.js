// What compiled templates are written in: Jinja's values, filters and scopes.
// Names and rules are those of Jinja and Python, so that a template draws the same here and there.

import { as_text, equal } from "./python.js";
import { fill } from "./strings.js";

/** Text that is HTML already. */
export class Markup {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
  toString() {
    return this.text;
  }
}

const SIGNS = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;" };

/** A value as HTML. @param {any} value @returns {Markup} */
export function escape(value) {
  if (value instanceof Markup) return value;
  return new Markup(as_text(value).replace(/[&<>"']/g, (sign) => SIGNS[/** @type {"&"} */ (sign)]));
}

/** @param {any} value */
export const shown = (value) => escape(value).text;

/** Whether Python takes a value for true. @param {any} value */
export function truth(value) {
  if (value instanceof Markup) return value.text !== "";
  if (Array.isArray(value)) return value.length > 0;
  if (value instanceof Map || value instanceof Set) return value.size > 0;
  return Boolean(value);
}

/** @param {any} scope @param {string} key */
export function name(scope, key) {
  if (!(key in scope)) throw new Error(`template: ${key} is not defined`);
  return scope[key];
}

/** @param {any} value @param {string} key */
export function attr(value, key) {
  const found = value instanceof Map ? value.get(key) : value?.[key];
  if (found === undefined) throw new Error(`template: ${as_text(value)} has no ${key}`);
  return found;
}

/** @param {any} value @param {any} key */
export function item(value, key) {
  if (value instanceof Map) {
    if (!value.has(key)) throw new Error(`template: no entry ${key}`);
    return value.get(key);
  }
  if (typeof key === "number") return (typeof value === "string" ? [...value] : value).at(key);
  return attr(value, key);
}

/** @param {any} value @param {number | null} first @param {number | null} last */
export function slice(value, first, last) {
  const ends = /** @type {[number, number | undefined]} */ ([first ?? 0, last ?? undefined]);
  if (value instanceof Markup) return new Markup([...value.text].slice(...ends).join(""));
  return typeof value === "string" ? [...value].slice(...ends).join("") : value.slice(...ends);
}

export const eq = equal;

/** @param {any} value @param {any} within */
export function contains(value, within) {
  if (within instanceof Map || within instanceof Set) return within.has(value);
  if (typeof within === "string") return within.includes(value);
  return within.some((/** @type {any} */ one) => equal(one, value));
}

/** @param {any} left @param {any} right */
export function add(left, right) {
  if (Array.isArray(left)) return [...left, ...right];
  return typeof left === "number" ? left + right : concat([left, right]);
}

/** @param {number} left @param {number} right */
export const sub = (left, right) => left - right;

/** @param {any} left @param {number} right */
export const mul = (left, right) => (typeof left === "string" ? left.repeat(right) : left * right);

/** @param {any[]} parts */
export function concat(parts) {
  if (parts.some((part) => part instanceof Markup)) return new Markup(parts.map(shown).join(""));
  return parts.map(as_text).join("");
}

/** @param {any} left @param {() => any} right */
export const and = (left, right) => (truth(left) ? right() : left);

/** @param {any} left @param {() => any} right */
export const or = (left, right) => (truth(left) ? left : right());

/** @param {any} listed */
export const iterated = (listed) => (listed instanceof Map ? [...listed.keys()] : [...listed]);

/** @param {any} scope @param {string[]} names @param {any} value */
export function assign(scope, names, value) {
  const parts = names.length > 1 ? [...value] : [value];
  names.forEach((key, k) => (scope[key] = parts[k]));
}

/**
 * A loop: each turn has a scope of its own, and `loop` in it.
 * @param {any} scope @param {string[]} names @param {any} listed
 * @param {((scope: any) => any) | null} test @param {(scope: any) => void} body @param {() => void} otherwise
 */
export function loop(scope, names, listed, test, body, otherwise) {
  let scopes = iterated(listed).map((value) => {
    const own = Object.create(scope);
    assign(own, names, value);
    return own;
  });
  if (test) scopes = scopes.filter((own) => truth(test(own)));
  scopes.forEach((own, k) => {
    own.loop = { index: k + 1, index0: k, first: k === 0, last: k === scopes.length - 1, length: scopes.length };
    body(own);
  });
  if (scopes.length === 0) otherwise();
}

/**
 * @param {any} scope @param {string[]} names @param {Record<string, (scope: any) => any>} usual
 * @param {(scope: any, o: string[]) => void} body
 */
export function macro(scope, names, usual, body) {
  const made = (/** @type {any[]} */ given, /** @type {any} */ named) => {
    const own = Object.create(scope);
    names.forEach((key, k) => {
      if (k < given.length) own[key] = given[k];
      else if (named && key in named) own[key] = named[key];
      else if (key in usual) own[key] = usual[key](own);
      else throw new Error(`template: macro lacks ${key}`);
    });
    /** @type {string[]} */
    const o = [];
    body(own, o);
    return new Markup(o.join(""));
  };
  return Object.assign(made, { is_macro: true });
}

/** @param {any} called @param {any[]} given @param {any} named */
export function call(called, given, named) {
  if (called.is_macro) return called(given, named);
  return named ? called(...given, named) : called(...given);
}

/** @type {Record<string, (text: string, given: any[], named: any) => any>} */
const OF_TEXT = {
  format: (text, given, named) => fill(text, ...given, ...(named ? [named] : [])),
  upper: (text) => text.toUpperCase(),
  lower: (text) => text.toLowerCase(),
  join: (text, [parts]) => parts.join(text),
};

/** @param {any} value @param {string} key @param {any[]} given @param {any} named */
export function method(value, key, given, named) {
  if (typeof value === "string") return OF_TEXT[key](value, given, named);
  if (value instanceof Map && key === "items") return [...value];
  if (value instanceof Map && key === "values") return [...value.values()];
  if (value instanceof Map && key === "get") return value.has(given[0]) ? value.get(given[0]) : (given[1] ?? null);
  const called = attr(value, key);
  return called.is_macro ? called(given, named) : value[key](...given, ...(named ? [named] : []));
}

/** @param {string} key @param {any} value @param {any[]} given */
export function test(key, value, given) {
  if (key === "boolean") return typeof value === "boolean";
  if (key === "equalto") return equal(value, given[0]);
  if (key === "in") return contains(value, given[0]);
  throw new Error(`template: no test ${key}`);
}

/** @param {any[]} given */
const judged = (given) => (/** @type {any} */ one) => {
  const value = item(one, given[0]);
  return given.length > 1 ? test(given[1], value, given.slice(2)) : truth(value);
};

/** @param {any} text */
const quoted = (text) =>
  encodeURIComponent(as_text(text))
    .replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
    .replace(/%20/g, "+");

/** @param {any} value @param {any} between */
function join(value, between = "") {
  const parts = iterated(value);
  const is_markup = between instanceof Markup || parts.some((part) => part instanceof Markup);
  return is_markup ? new Markup(parts.map(shown).join(shown(between))) : parts.map(as_text).join(between);
}

/** @type {Record<string, (value: any, given: any[], named: any) => any>} */
const FILTERS = {
  attr: (value, [key]) => attr(value, key),
  join: (value, [between]) => join(value, between),
  length: (value) => (value instanceof Map ? value.size : typeof value === "string" ? [...value].length : value.length),
  list: (value) => iterated(value),
  lower: (value) => as_text(value).toLowerCase(),
  upper: (value) => as_text(value).toUpperCase(),
  map: (value, _, named) => iterated(value).map((one) => attr(one, named.attribute)),
  max: (value) => Math.max(...iterated(value)),
  min: (value) => Math.min(...iterated(value)),
  plain_data: (value) => value,
  rejectattr: (value, given) => iterated(value).filter((one) => !judged(given)(one)),
  replace: (value, [old, fresh]) =>
    fresh instanceof Markup
      ? new Markup(shown(value).replaceAll(old, fresh.text))
      : as_text(value).replaceAll(old, fresh),
  safe: (value) => new Markup(as_text(value)),
  selectattr: (value, given) => iterated(value).filter(judged(given)),
  urlencode: (value) => [...value].map(([key, said]) => `${quoted(key)}=${quoted(said)}`).join("&"),
};

/** @param {string} key @param {any} value @param {any[]} given @param {any} named */
export function filter(key, value, given, named) {
  if (!(key in FILTERS)) throw new Error(`template: no filter ${key}`);
  return FILTERS[key](value, given, named);
}

/** Templates that draw pages. */
export class Renderer {
  /** @param {Record<string, any>} templates */
  constructor(templates) {
    this.templates = templates;
  }

  /** A page. @param {string} file @param {Record<string, any>} parts */
  render(file, parts) {
    const scope = Object.assign(Object.create(null), parts);
    /** @type {string[]} */
    const o = [];
    /** @type {Record<string, any>} */
    let blocks = {};
    for (let found = this.templates[file]; found; found = this.templates[found.parent]) {
      blocks = { ...found.blocks, ...blocks };
      found.root(scope, o, this.tools(blocks));
    }
    return o.join("");
  }

  /** @param {Record<string, any>} blocks */
  tools(blocks) {
    const tools = {
      block: (/** @type {string} */ key, /** @type {any} */ scope, /** @type {string[]} */ o) =>
        blocks[key](Object.create(scope), o, tools),
      include: (/** @type {string} */ file, /** @type {any} */ scope, /** @type {string[]} */ o) =>
        this.templates[file].root(Object.create(scope), o, tools),
      /** @param {string} file @param {any} around @param {any} scope @param {string[][]} names */
      take: (file, around, scope, names) => {
        const own = Object.create(around);
        this.templates[file].root(own, [], tools);
        for (const [key, as] of names) scope[as] = own[key];
      },
    };
    return tools;
  }
}
