// The rules of a policy that a site of files can have: `serve/policy`.

import { is_hidden, STATUS } from "./cube.js";
import { equal } from "./python.js";
import { format_general, format_grouped } from "./numbers.js";
import { Refusal } from "./refusals.js";
import { repr, sorted } from "./strings.js";

/** @typedef {import("./answer.js").Question} Question */
/** @typedef {import("./cube.js").Cube} Cube */

const LEFT_OUT =
  "Figures are left out to keep the table readable. " +
  "They are protected like all others, and some can be worked out from totals.";

export class Policy {
  /** @param {any} told */
  constructor(told) {
    /** @type {number} */ this.max_variables = told.max_variables;
    /** @type {number} */ this.max_cells = told.max_cells;
    /** @type {number} */ this.threshold = told.threshold;
    /** @type {"own" | "fixed" | "none"} */ this.groups = told.groups;
    /** @type {Map<string, Map<string, string[]>>} */
    this.fixed_groups = new Map(told.fixed_groups.map((/** @type {any} */ [name, groups]) => [name, new Map(groups)]));
  }

  /**
   * Refuse what public names and sizes forbid; a table of files costs nobody's server anything.
   * @param {Question} question
   */
  check(question) {
    this.check_size(question);
    this.check_groups(question);
  }

  /** @param {Question} question */
  check_size(question) {
    const used = question.in_public_order.filter((asked) => !asked.variable.is_time).length;
    if (used > this.max_variables) {
      const allowed = `At most ${limit_text(this.max_variables)} variables in one table, filters included.`;
      throw new Refusal("too_many_variables", `The table asks for ${used} variables.`, allowed);
    }
    if (question.cells > this.max_cells) {
      const message = `The table would have ${format_grouped(question.cells)} cells, totals included.`;
      throw new Refusal("too_many_cells", message, `At most ${limit_text(this.max_cells)} cells.`);
    }
  }

  /**
   * Refuse groups that are not the visitor's to form; a filter of several categories is one.
   * @param {Question} question
   */
  check_groups(question) {
    if (this.groups === "own") return;
    const { query } = question;
    for (const [variable, groups] of query.groups) {
      const allowed = this.fixed(variable);
      if ([...groups].some(([label, codes]) => !same(codes, allowed.get(label)))) throw this.own_groups(variable);
    }
    for (const [variable, codes] of query.where) {
      const is_fixed = [...this.fixed(variable).values()].some((group) => same(codes, group));
      if (codes.length !== 1 && !is_fixed) throw this.own_groups(variable);
    }
  }

  /** @param {string} variable @returns {Map<string, string[]>} */
  fixed(variable) {
    return (this.groups === "fixed" && this.fixed_groups.get(variable)) || new Map();
  }

  /** @param {string} variable */
  own_groups(variable) {
    if (this.groups === "none") {
      const message = "Categories cannot be added up to own groups or populations in this data set.";
      return new Refusal("own_groups", message, "The categories and levels on offer.");
    }
    const listed = [...this.fixed(variable).keys()].join(", ") || "none";
    return new Refusal(
      "own_groups",
      `Groups of ${repr(variable)} are fixed in this data set, in filters too.`,
      `Groups: ${listed}.`,
    );
  }

  /**
   * Hide figures below the threshold, zero excepted: for presentation.
   * @param {Cube} cube @returns {{cube: Cube, notes: string[]}}
   */
  judge(cube) {
    const is_small = (/** @type {number} */ value, /** @type {number} */ k) =>
      !is_hidden(cube.status[k]) && value !== 0 && Math.abs(value) < this.threshold;
    if (!this.threshold || !cube.values.some(is_small)) return { cube, notes: [] };
    const hidden = cube.changed({
      values: cube.values.map((value, k) => (is_small(value, k) ? 0 : value)),
      status: cube.status.map((status, k) => (is_small(cube.values[k], k) ? STATUS.below_threshold : status)),
    });
    return { cube: hidden, notes: [`Figures below ${limit_text(this.threshold)} are not shown.`, LEFT_OUT] };
  }
}

/** @param {number} limit */
const limit_text = (limit) => (limit % 1 ? format_general(limit, true) : format_grouped(Math.trunc(limit)));

/** @param {string[]} codes @param {string[] | undefined} others */
const same = (codes, others) => others !== undefined && equal(sorted(new Set(codes)), sorted(new Set(others)));
