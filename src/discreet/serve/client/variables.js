// What is on offer: variables, their details and codes, as `serve/data/source.py` has them.

import { CubeEntry } from "./cube.js";
import { capitalized } from "./python.js";

/**
 * @typedef {object} VariableJson
 * @property {string} name @property {string} title @property {boolean} is_time
 * @property {string[]} leaves @property {string[]} total_codes
 * @property {[string, string][]} labels @property {[string, [number, number][]][]} nodes
 * @property {DetailJson[]} details
 */
/**
 * @typedef {object} DetailJson
 * @property {string} name @property {string} label @property {boolean} has_total
 * @property {number} cells @property {boolean} leaves_out @property {number} last_level
 * @property {[string, string, number, boolean][]} entries @property {string} base @property {string[]} slots
 */

/** A variable in the detail a table shows. */
export class Detail {
  /** @param {DetailJson} told */
  constructor(told) {
    this.name = told.name;
    this.label = told.label;
    this.has_total = told.has_total;
    this.cells = told.cells;
    this.leaves_out = told.leaves_out;
    this.last_level = told.last_level;
    this.base = told.base;
    this.slots = told.slots;
    this.entries = told.entries.map(([code, label, depth, is_sum]) => new CubeEntry(code, label, depth, is_sum));
  }
}

/** The codes of a variable, and the finest categories under each. */
class Axis {
  /** @param {VariableJson} told */
  constructor(told) {
    this.leaves = told.leaves;
    this.total_codes = told.total_codes;
    this.labels = new Map(told.labels);
    this.leaf_position = new Map(told.leaves.map((code, k) => [code, k]));
    this.node_leaves = new Map(told.nodes.map(([code, runs]) => [code, spread(runs)]));
  }
}

/** Places from runs of them. @param {[number, number][]} runs */
function spread(runs) {
  return runs.flatMap(([first, count]) => Array.from({ length: count }, (_, k) => first + k));
}

/** A variable that may be put into a table. */
export class OfferedVariable {
  /** @param {VariableJson} told */
  constructor(told) {
    this.name = told.name;
    this.label_inside = told.title;
    this.label = capitalized(told.title);
    this.is_time = told.is_time;
    this.axis = new Axis(told);
    this.details = told.details.map((detail) => new Detail(detail));
    this.smallest = this.details.reduce((least, one) => (one.cells < least.cells ? one : least));
  }
  /** @param {Detail} detail */
  entries(detail) {
    return detail.entries;
  }
  /** @param {string[]} codes */
  labels_of(codes) {
    return codes.map((code) => this.axis.labels.get(code) || code);
  }
}

/** A variable in one of the details on offer. */
export class DetailedVariable {
  /** @param {OfferedVariable} variable @param {Detail} detail */
  constructor(variable, detail) {
    this.variable = variable;
    this.detail = detail;
  }
  get name() {
    return this.variable.name;
  }
  get label() {
    return this.variable.label + this.detail_label;
  }
  get label_inside() {
    return this.variable.label_inside + this.detail_label;
  }
  get detail_label() {
    return this.detail.label ? ` (${this.detail.label})` : "";
  }
  get entries() {
    return this.detail.entries;
  }
  /** @param {string[]} codes */
  has(codes) {
    return codes.every((code) => this.entries.some((entry) => entry.code === code));
  }
  /**
   * The places of the finest categories that belong to some codes.
   * @param {Iterable<string>} codes @returns {Set<number>}
   */
  leaves(codes) {
    const { axis } = this.variable;
    return new Set([...codes].flatMap(
      (code) => axis.node_leaves.get(code) ?? [/** @type {number} */ (axis.leaf_position.get(code))],
    ));
  }
}

/** What can be asked for, by the name of the detail. @param {OfferedVariable[]} variables */
export function by_detail(variables) {
  return new Map(
    variables.flatMap((v) => v.details.map((d) => /** @type {const} */ ([d.name, new DetailedVariable(v, d)]))),
  );
}

/**
 * The smallest detail that has these codes, or the largest where none has them all.
 * @param {OfferedVariable} variable @param {string[]} codes
 */
export function coarsest(variable, codes) {
  const sizes = [...variable.details].sort((one, other) => one.cells - other.cells);
  const options = sizes.map((detail) => new DetailedVariable(variable, detail));
  return options.find((asked) => asked.has(codes)) ?? options[options.length - 1];
}
