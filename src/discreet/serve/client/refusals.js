// The one way to fail: what was asked and why it is refused, what would be allowed, and offers.

import { suggest } from "./python.js";
import { repr } from "./strings.js";

/** @typedef {import("./query.js").Query} Query */

export class Refusal extends Error {
  /**
   * @param {string} code @param {string} message @param {string} allowed @param {number} [status]
   * @param {[string, Query][]} [offers]
   */
  constructor(code, message, allowed, status = 400, offers = []) {
    super(message);
    this.code = code;
    this.allowed = allowed;
    this.status = status;
    this.offers = offers;
  }
  public() {
    return this.message;
  }
}

/** @template {string} T @param {string} name @param {string} value @param {readonly T[]} allowed @returns {T} */
export function one_of(name, value, allowed) {
  const found = allowed.find((known) => known === value);
  if (found !== undefined) return found;
  throw new Refusal(
    "unknown_value",
    `${name} cannot be ${repr(value)}.`,
    `One of ${allowed.filter(Boolean).join(", ")}.`,
  );
}

/**
 * @param {string} what @param {string} name @param {string[]} known @param {string} of @param {string} [code]
 * @param {number} [status]
 */
export function no_such(what, name, known, of, code = "unknown_name", status = 400) {
  const message = `There is no ${what} ${repr(name)}. ${suggest(name, known)}`;
  return new Refusal(code, message, `${of}: ${known.join(", ")}.`, status);
}
