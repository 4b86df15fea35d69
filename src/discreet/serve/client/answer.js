// A query checked against what a data set offers, and the table that answers it: `serve/answer.py`.

import { CubeEntry, product } from "./cube.js";
import { equal, sorted_map, suggest } from "./python.js";
import { no_such, Refusal } from "./refusals.js";
import { as_read, repr } from "./strings.js";
import { by_detail, coarsest } from "./variables.js";

/** @typedef {import("./cube.js").Cube} Cube */
/** @typedef {import("./query.js").Query} Query */
/** @typedef {import("./query.js").Codes} Codes */
/** @typedef {import("./variables.js").OfferedVariable} OfferedVariable */
/** @typedef {import("./variables.js").DetailedVariable} DetailedVariable */
/** @typedef {{variables: OfferedVariable[], units: string[]}} OnOffer */

/** A query that can be answered, but for the policy of the data set. */
export class Question {
  /**
   * @param {Query} query @param {OnOffer} source
   * @param {Record<"rows" | "columns" | "layers", DetailedVariable[]>} sides @param {DetailedVariable[]} filters
   */
  constructor(query, source, sides, filters) {
    this.query = query;
    this.on_offer = source.variables;
    this.rows = sides.rows;
    this.columns = sides.columns;
    this.layers = sides.layers;
    this.filters = filters;
    this.unit = query.unit || source.units[0];
    this.shown = [...this.rows, ...this.columns, ...this.layers];
    const order = new Map(this.on_offer.map((v, place) => [v.name, place]));
    const rank = (/** @type {DetailedVariable} */ asked) => /** @type {number} */ (order.get(asked.name));
    this.in_public_order = [...this.shown, ...filters].sort((one, other) => rank(one) - rank(other));
  }

  /** The question, or a refusal that says what is on offer. @param {OnOffer} source @param {Query} query */
  static checked(source, query) {
    const named = by_detail(source.variables);
    for (const name of query.variables) {
      if (!named.has(name)) throw no_such("variable or level", name, [...named.keys()], "Variables and levels");
    }
    query = in_one_period(query, source.variables);
    const side = (/** @type {string[]} */ names) =>
      names.map((name) => /** @type {DetailedVariable} */ (named.get(name)));
    const sides = { rows: side(query.rows), columns: side(query.columns), layers: side(query.layers) };
    const shown = [...sides.rows, ...sides.columns, ...sides.layers].map((asked) => asked.name);
    check_table(query, shown, source.variables);
    const filters = filters_of(source.variables, query, shown);
    if (query.unit && !source.units.includes(query.unit)) {
      throw new Refusal(
        "unknown_unit",
        `This data set does not publish unit ${repr(query.unit)}.`,
        `Units: ${source.units.join(", ")}.`,
      );
    }
    const question = new Question(query, source, sides, filters);
    check_codes(question);
    return question;
  }

  get details() {
    return this.in_public_order.map((asked) => asked.detail.name);
  }
  /** Cells of the full crossing of the public code lists, totals included; of one period. */
  get cells() {
    const crossed = [...this.shown, ...this.filters.filter((asked) => !asked.variable.is_time)];
    return product(crossed.map((asked) => asked.detail.cells));
  }
  /** @param {string} name */
  asked(name) {
    return /** @type {DetailedVariable} */ (this.in_public_order.find((asked) => asked.name === name));
  }
}

/** A table with what explains it. */
export class Answer {
  /** @param {any} dataset @param {Question} question @param {Cube} cube @param {string[]} notes */
  constructor(dataset, question, cube, notes) {
    this.dataset = dataset;
    this.question = question;
    this.cube = cube;
    this.notes = notes;
    this.query = question.query;
    this.rows = question.rows.map((asked) => asked.name);
    this.columns = question.columns.map((asked) => asked.name);
    const over = shares_over(this.query, question.on_offer).get(this.query.view.show);
    this.shown = over ? cube.shares(over) : cube;
  }
  /** The visitor's groups with what they add up, each as a text. */
  get groups() {
    return this.question.shown.flatMap((asked) =>
      [...(this.query.groups.get(asked.name) ?? [])].map(
        ([label, codes]) => `${label}: ${asked.variable.labels_of(codes).join(", ")}`,
      ),
    );
  }
}

/**
 * The query about the last period, where it neither shows periods nor names one.
 * @param {Query} query @param {OfferedVariable[]} variables
 */
export function in_one_period(query, variables) {
  const shown = query.variables.map((name) => name.split("[")[0]);
  const one = variables.find((v) => v.is_time && !shown.includes(v.name) && !query.where.has(v.name));
  if (!one) return query;
  const { leaves } = one.axis;
  return query.changed({ where: sorted_map([...query.where, [one.name, [leaves[leaves.length - 1]]]]) });
}

/**
 * What can be shown in per cent, with the variables over which it is; periods have no share.
 * @param {Query} query @param {OfferedVariable[]} variables
 */
export function shares_over(query, variables) {
  const periods = variables.filter((v) => v.is_time).map((v) => v.name);
  const side = (/** @type {string[]} */ names) =>
    names.map((name) => name.split("[")[0]).filter((name) => !periods.includes(name));
  const [rows, columns] = [side(query.rows), side(query.columns)];
  const over = /** @type {[string, string[]][]} */ (
    [["row", columns], ["column", rows], ["total", [...rows, ...columns]]]
  );
  return new Map(over.filter(([, names]) => names.length > 0));
}

/**
 * The crossing with codes that are added up and that it lacks since they can never occur.
 * @param {Cube} cube @param {Question} question
 */
export function with_impossible(cube, question) {
  const { groups, where } = question.query;
  for (const asked of question.in_public_order) {
    const named = new Set(
      [...(where.get(asked.name) ?? []), ...[...(groups.get(asked.name) ?? new Map()).values()].flat()],
    );
    let before = 0;
    for (const entry of asked.entries) {
      const has_it = cube.axis(asked.name).codes.includes(entry.code);
      if (named.has(entry.code) && !has_it) cube = cube.with_slice(asked.name, before, entry, cube.nobody(asked.name));
      before += Number(has_it || named.has(entry.code));
    }
  }
  return cube;
}

/**
 * The crossing filtered, grouped, picked and put in order: sums and choices of its cells.
 * @param {Cube} cube @param {Question} question
 */
export function arrange(cube, question) {
  const { query } = question;
  for (const asked of question.filters) cube = cube.sum_over(asked.name, codes_in(query.where, asked));
  for (const asked of question.shown) {
    if (query.where.has(asked.name)) cube = restrict(cube, asked, codes_in(query.where, asked));
    const groups = query.groups.get(asked.name);
    if (groups) cube = cube.group(asked.name, groups);
    const picked = query.picked.get(asked.name);
    if (picked) {
      const axis = cube.axis(asked.name);
      const total = axis.total === null ? [] : [axis.codes[axis.total]];
      cube = cube.select(asked.name, [...total, ...picked.filter((code) => axis.codes.includes(code))]);
    }
  }
  const meant = cube.reorder(question.shown.map((asked) => asked.name)).without_noise(true);
  return meant.with_labels(question.shown.map((asked) => asked.label));
}

/** @param {Codes} chosen @param {DetailedVariable} asked */
const codes_in = (chosen, asked) => /** @type {string[]} */ (chosen.get(asked.name));

/** @param {Query} query @param {string[]} shown @param {OfferedVariable[]} variables */
function check_table(query, shown, variables) {
  if (shown.length === 0) {
    throw new Refusal("no_variables", "No variable was chosen.", "At least one variable in rows, columns or layers.");
  }
  for (const name of shown) {
    if (shown.filter((other) => other === name).length > 1) {
      throw new Refusal(
        "repeated_variable",
        `Variable ${repr(name)} was chosen more than once.`,
        "Each variable at most once in a table.",
      );
    }
  }
  const { show } = query.view;
  const shows = ["count", ...shares_over(query, variables).keys()];
  if (!shows.includes(show)) {
    const message = `This table has no ${show} percentages: they would all be 100.`;
    throw new Refusal(
      "no_shares",
      message,
      `One of ${shows.join(", ")}.`,
      400,
      [["without percentages", query.changed({ show: "count" })]],
    );
  }
}

/**
 * Variables that restrict the population without being shown, as coarse as their codes.
 * @param {OfferedVariable[]} variables @param {Query} query @param {string[]} shown
 */
function filters_of(variables, query, shown) {
  const by_name = new Map(variables.map((v) => [v.name, v]));
  /** @type {DetailedVariable[]} */
  const found = [];
  for (const [name, codes] of query.where) {
    require_name(name, [...by_name.keys()]);
    if (!shown.includes(name)) found.push(coarsest(/** @type {OfferedVariable} */ (by_name.get(name)), codes));
  }
  return found;
}

/** Every code that is named must be one of the detail that was chosen. @param {Question} question */
function check_codes(question) {
  const { query } = question;
  const shown = new Map(question.shown.map((asked) => [asked.name, asked]));
  for (const [name, codes] of query.where) {
    const asked = question.asked(name);
    check_known(asked, codes);
    check_apart(asked, codes);
    if (asked.variable.is_time && !shown.has(name) && codes.length > 1) throw pooled_refusal(asked, query);
  }
  for (const [name, groups] of query.groups) {
    const asked = require_name(name, [...shown.keys()]) ?? /** @type {DetailedVariable} */ (shown.get(name));
    if (asked.variable.is_time) throw pooled_refusal(asked, query);
    check_groups(asked, groups, query.where.get(name));
  }
  for (const [name, codes] of query.picked) {
    const asked = require_name(name, [...shown.keys()]) ?? /** @type {DetailedVariable} */ (shown.get(name));
    const groups = query.groups.get(name);
    const within = query.where.get(name);
    if (!groups) check_known(asked, codes);
    if (asked.variable.is_time && within && !codes.some((code) => within.includes(code))) {
      throw new Refusal(
        "no_period",
        `No period of ${asked.label_inside} is left to show.`,
        "Periods within the filter.",
      );
    }
    if (!groups) continue;
    const unknown = codes.find((code) => !groups.has(code));
    if (unknown !== undefined) {
      throw new Refusal(
        "unknown_code",
        `There is no group ${repr(unknown)}.`,
        `Groups: ${[...groups.keys()].join(", ")}.`,
      );
    }
  }
}

/** @param {DetailedVariable} asked @param {Codes} groups @param {string[] | undefined} population */
function check_groups(asked, groups, population) {
  const most = asked.detail.cells - 1; // no more cells than with the categories themselves
  if (groups.size > most) {
    throw new Refusal(
      "too_many_groups",
      `${groups.size} groups of ${asked.label_inside} are more than it has categories.`,
      `At most ${most} groups.`,
    );
  }
  for (const codes of groups.values()) {
    check_known(asked, codes);
    check_apart(asked, codes);
    check_within(asked, codes, population);
  }
  check_labels(asked, groups);
}

/** @param {DetailedVariable} asked @param {Query} query */
function pooled_refusal(asked, query) {
  const message = `Periods are not added up: ${asked.label_inside} says when people were counted.`;
  const allowed = `One period, where.${asked.name}=PERIOD, or several of them in rows or columns.`;
  const groups = new Map([...query.groups].filter(([name]) => name !== asked.name));
  const last = asked.variable.axis.leaves[asked.variable.axis.leaves.length - 1];
  const where = equal(groups, query.groups) ? new Map(query.where).set(asked.name, [last]) : query.where;
  return new Refusal(
    "pooled_periods",
    message,
    allowed,
    400,
    [[asked.variable.labels_of([last])[0], query.changed({ where, groups })]],
  );
}

/**
 * A group must not pass for the total, nor for a category on offer that it is not.
 * @param {DetailedVariable} asked @param {Codes} groups
 */
function check_labels(asked, groups) {
  const { axis } = asked.variable;
  const total = asked.entries[0];
  const by_name = new Map([...groups].map(([label, codes]) => [as_read(label), codes]));
  if ([...axis.total_codes, total.code, total.label].some((name) => by_name.has(as_read(name)))) {
    throw new Refusal(
      "unreadable_group",
      `A group of ${asked.label_inside} is named like its total.`,
      "Another name for the group.",
    );
  }
  for (const code of new Set([...axis.leaf_position.keys(), ...axis.node_leaves.keys()])) {
    if (axis.total_codes.includes(code)) continue;
    for (const name of [as_read(code), as_read(axis.labels.get(code) || code)]) {
      const codes = by_name.get(name);
      if (codes && !same(asked.leaves(codes), asked.leaves([code]))) {
        throw new Refusal(
          "unreadable_group",
          `A group of ${asked.label_inside} is named like another category.`,
          "Another name for the group.",
        );
      }
    }
  }
}

/** @param {Set<number>} one @param {Set<number>} other */
const same = (one, other) => one.size === other.size && [...one].every((place) => other.has(place));

/**
 * Refuse a variable that is not among those known.
 * @param {string} name @param {string[]} known @returns {undefined}
 */
function require_name(name, known) {
  if (known.includes(name)) return undefined;
  const message = `Variable ${repr(name)} is not in this table. ${suggest(name, known)}`;
  throw new Refusal("unknown_name", message, `Variables: ${known.join(", ")}.`);
}

/** @param {DetailedVariable} asked @param {string[]} codes */
function check_known(asked, codes) {
  const known = asked.entries.map((entry) => entry.code);
  const code = codes.find((one) => !known.includes(one));
  if (code === undefined) return;
  const message = `${asked.label} has no code ${repr(code)}. ${suggest(code, known)}`;
  const some = known.slice(0, 20).join(", ") + (known.length > 20 ? ", …" : "");
  throw new Refusal("unknown_code", message, `Codes: ${some}.`);
}

/**
 * Codes that are summed must not overlap: their records would be counted twice.
 * @param {DetailedVariable} asked @param {string[]} codes
 */
function check_apart(asked, codes) {
  const apart = codes.reduce((n, code) => n + asked.leaves([code]).size, 0);
  if (apart !== asked.leaves(codes).size) {
    throw new Refusal(
      "overlapping_codes",
      `Codes of ${asked.label} that are added up overlap.`,
      "Codes of one level, or of branches apart.",
    );
  }
}

/**
 * A group must lie in the population that is counted.
 * @param {DetailedVariable} asked @param {string[]} codes @param {string[] | undefined} population
 */
function check_within(asked, codes, population) {
  const within = population && asked.leaves(population);
  if (within && [...asked.leaves(codes)].some((leaf) => !within.has(leaf))) {
    const message = `A group of ${asked.label_inside} lies outside of the population that is counted.`;
    throw new Refusal("outside_population", message, "Groups of codes within the filter.");
  }
}

/**
 * A variable with the codes within a population; its total is their sum.
 * @param {Cube} cube @param {DetailedVariable} asked @param {string[]} codes
 */
function restrict(cube, asked, codes) {
  const { entries } = cube.axis(asked.name);
  const within = asked.leaves(codes);
  const kept = entries.filter((e) => !e.is_total && [...asked.leaves([e.code])].every((leaf) => within.has(leaf)));
  const inside = cube.select(asked.name, kept.map((entry) => entry.code));
  if (asked.variable.is_time) return inside;
  const first = entries.find((entry) => entry.is_total) ?? new CubeEntry("total", "Total", 0, true);
  return inside.with_slice(asked.name, 0, first, cube.sum_over(asked.name, codes));
}
