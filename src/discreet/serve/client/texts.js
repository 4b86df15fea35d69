// All texts of one language, and sentences of the library in it: `serve/web/texts.py`.

import { Numbers } from "./numbers.js";
import { fill } from "./strings.js";

const DEFAULT = "en";
const NUMBER = /^\d[\d,]*(\.\d+)?$/;
const SENTENCE = /(?<=[.:]) (?=[A-Z0-9])/;
const SAME = /** @type {Record<string, string>} */ ({ no: "nb", nn: "nb" });

/** @typedef {{text: string, language: string}} LanguageText */

export class Texts {
  /** @param {any} told As `rules.py` writes a language. */
  constructor(told) {
    Object.assign(this, told.content);
    /** @type {string} */ this.code = told.code;
    /** @type {Record<string, [string, string]>} */ this.counted = told.counted;
    /** @type {[string, string][]} */ this.said = told.said;
    /** @type {Record<string, string>} */ this.words = told.words;
    this.numbers = new Numbers(told.numbers);
    this.exact = new Map(this.said);
    /** @type {[RegExp, string][] | null} */
    this.patterns = null;
    /** @type {Map<string, LanguageText>} */
    this.kept = new Map();
  }

  /** A number of things: `count("cells", 1)` is `1 cell`. @param {string} what @param {number} n */
  count(what, n) {
    const [one, many] = this.counted[what];
    return fill(n === 1 ? one : many, this.numbers.format(n));
  }

  /**
   * A sentence of the library in this language, or as it is where there is none.
   * @param {string} english @returns {LanguageText}
   */
  translate(english) {
    if (this.code === DEFAULT || !english) return { text: english, language: DEFAULT };
    let found = this.kept.get(english);
    if (!found) {
      const text = this.find(english) ?? this.by_sentence(english);
      found = text === null ? { text: english, language: DEFAULT } : { text, language: this.code };
      this.kept.set(english, found);
    }
    return found;
  }

  /** Several sentences, where each of them is known. @param {string} english @returns {string | null} */
  by_sentence(english) {
    const parts = english.split(SENTENCE).map((part) => this.find(part));
    return parts.includes(null) ? null : parts.join(" ");
  }

  /** @param {string} english @returns {string | null} */
  find(english) {
    const exact = this.exact.get(english);
    if (exact !== undefined) return exact;
    this.patterns ??= patterns_of(this.said);
    for (const [pattern, translation] of this.patterns) {
      const found = pattern.exec(english);
      if (found) {
        return fill(translation, ...found.slice(1).map(
          (part) => (NUMBER.test(part) ? this.numbers.localize(part) : this.translate(part).text),
        ));
      }
    }
    return null;
  }
}

/**
 * Texts in which `{}` stands for something, the most exact first.
 * @param {[string, string][]} said @returns {[RegExp, string][]}
 */
function patterns_of(said) {
  const open = said.filter(([english]) => english.includes("{}"));
  const length = (/** @type {string} */ english) => [...english.replaceAll("{}", "")].length;
  open.sort(([one], [other]) => length(other) - length(one));
  return open.map(([english, translation]) => {
    const parts = english.split("{}").map((part) => part.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&"));
    return [new RegExp(`^${parts.join("(.+?)")}$`, "s"), translation];
  });
}

/** The first offered language among a reader's wishes. @param {readonly string[]} wishes @param {string[]} offered */
export function preferred_language(wishes, offered) {
  for (const tag of wishes) {
    const base = tag.toLowerCase().split("-")[0];
    if (offered.includes(SAME[base] ?? base)) return SAME[base] ?? base;
  }
  return offered[0];
}
