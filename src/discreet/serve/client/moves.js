// What a visitor can do to a table, each as the query that comes of it: `serve/moves.py`.

import { sorted_map } from "./python.js";
import { sorted } from "./strings.js";
import { by_detail, DetailedVariable } from "./variables.js";

/** @typedef {import("./query.js").Query} Query */
/** @typedef {import("./query.js").Codes} Codes */
/** @typedef {import("./variables.js").OfferedVariable} OfferedVariable */
/** @typedef {import("./variables.js").Detail} Detail */
/** @typedef {"rows" | "columns" | "layers"} Place */

/** @type {Place[]} */
export const PLACES = ["rows", "columns", "layers"];

/** A variable where it stands in a table. */
export class Placed extends DetailedVariable {
  /** @param {DetailedVariable} asked @param {Place} place @param {number} rank */
  constructor(asked, place, rank) {
    super(asked.variable, asked.detail);
    this.place = place;
    this.rank = rank;
  }
}

/**
 * The variables of a query in their places, each name once; those that do not exist are passed over.
 * @param {Query} query @param {OfferedVariable[]} variables
 */
export function placed(query, variables) {
  const known = by_detail(variables);
  return PLACES.flatMap((place) =>
    [...new Set(query[place])].flatMap((name) => known.get(name) ?? []).map(
      (asked, rank) => new Placed(asked, place, rank),
    ),
  );
}

/** @param {Query} query @param {Place} place @param {OfferedVariable} variable @param {Detail} detail */
export function add(query, place, variable, detail) {
  const where = keep_codes(query.where, variable.name, variable.is_time ? new Set() : codes_of(detail));
  return relay(query.changed({ where }), { [place]: [...query[place], detail.name] });
}

/**
 * The table without a variable; what was chosen of it is gone, but not a filter.
 * @param {Query} query @param {Placed} one
 */
export function removed(query, one) {
  const left = relay(query, take_out(query, one));
  return left.changed({
    picked: with_codes(left.picked, one.name, []),
    groups: without(left.groups, one.name),
    folded: with_codes(left.view.folded, one.name, []),
  });
}

/** @param {Query} query @param {Placed} one @param {Place} place */
export function move(query, one, place) {
  const lists = take_out(query, one);
  return relay(query, { ...lists, [place]: [...lists[place], one.detail.name] });
}

/** A variable before the one that stood before it. @param {Query} query @param {Placed} one */
export function move_up(query, one) {
  const names = [...query[one.place]];
  const k = Math.max(names.indexOf(one.detail.name), 1); // a variable that was named twice stands first as well
  names.splice(k - 1, 2, names[k], names[k - 1]);
  return relay(query, { [one.place]: names });
}

/** Rows and columns exchanged; percentages turn with them. @param {Query} query */
export function swap_sides(query) {
  const { show } = query.view;
  const turned = show === "row" ? "column" : show === "column" ? "row" : show;
  return relay(query.changed({ show: turned }), { rows: query.columns, columns: query.rows });
}

/**
 * A variable in another detail; of the codes that were chosen those stay that it has.
 * @param {Query} query @param {Placed} one @param {Detail} detail
 */
export function at_level(query, one, detail) {
  const known = codes_of(detail);
  const names = query[one.place].map((name) => (name === one.detail.name ? detail.name : name));
  const groups = query.groups.get(one.name);
  const is_known = !groups || [...groups.values()].every((codes) => codes.every((code) => known.has(code)));
  const changes = {
    picked: keep_codes(query.picked, one.name, known),
    where: keep_codes(query.where, one.name, known),
    folded: keep_codes(query.view.folded, one.name, known),
    layer: new Map([...query.view.layer].filter(([v, code]) => v !== one.name || known.has(code))),
    groups: is_known ? query.groups : without(query.groups, one.name),
  };
  return relay(query.changed(changes), { [one.place]: names });
}

/**
 * Only these codes of a variable; all of them when there are none.
 * @param {Query} query @param {string} variable @param {string[]} codes
 */
export function pick(query, variable, codes) {
  return query.changed({ picked: with_codes(query.picked, variable, sorted(codes)) });
}

/**
 * Only the population with these codes; everybody when there are none.
 * @param {Query} query @param {string} variable @param {string[]} codes
 */
export function counting_only(query, variable, codes) {
  return query.changed({ where: with_codes(query.where, variable, sorted(codes)) });
}

/** @param {Query} query @param {string} variable @param {string} label @param {string[]} codes */
export function with_group(query, variable, label, codes) {
  const groups = new Map(query.groups.get(variable)).set(label, sorted(new Set(codes)));
  return query.changed(
    { groups: new Map(query.groups).set(variable, groups), picked: without(query.picked, variable) },
  );
}

/** @param {Query} query @param {string} variable @param {string} label */
export function without_group(query, variable, label) {
  const left = without(/** @type {Codes} */ (query.groups.get(variable)), label);
  const others = without(query.groups, variable);
  const groups = left.size > 0 ? others.set(variable, left) : others;
  return query.changed({ groups, picked: without(query.picked, variable) });
}

/**
 * A code folded where it was not, and the other way round.
 * @param {Query} query @param {string} variable @param {string} code
 */
export function toggle_fold(query, variable, code) {
  const codes = new Set(query.view.folded.get(variable));
  if (!codes.delete(code)) codes.add(code);
  return query.changed({ folded: with_codes(query.view.folded, variable, sorted(codes)) });
}

/**
 * Rows by a column: from large to small, then from small to large, then as they were.
 * @param {Query} query @param {string} column
 */
export function next_sort(query, column) {
  const { sort } = query.view;
  return query.changed({ sort: sort === `-${column}` ? column : sort === column ? "" : `-${column}` });
}

/**
 * Other lists; a layer, a sort or shares that these leave without a meaning are dropped.
 * @param {Query} query @param {Partial<Record<Place, string[]>>} lists
 */
function relay(query, lists) {
  const changed = query.changed(lists);
  const in_layers = changed.layers.map((name) => name.split("[")[0]);
  const { view } = changed;
  const is_same = changed.columns.join("|") === query.columns.join("|");
  return changed.changed({
    layer: new Map([...view.layer].filter(([variable]) => in_layers.includes(variable))),
    sort: is_same ? view.sort : "",
    show: changed.shows.includes(view.show) ? view.show : "count",
  });
}

/** @param {Query} query @param {Placed} one @returns {Record<Place, string[]>} */
function take_out(query, one) {
  const kept = (/** @type {Place} */ place) => query[place].filter((name) => name !== one.detail.name);
  return { rows: kept("rows"), columns: kept("columns"), layers: kept("layers") };
}

/** @param {Detail} detail */
const codes_of = (detail) => new Set(detail.entries.map((entry) => entry.code));

/** @template T @param {Map<string, T>} chosen @param {string} name */
const without = (chosen, name) => new Map([...chosen].filter(([one]) => one !== name));

/** @param {Codes} chosen @param {string} variable @param {Set<string>} known */
function keep_codes(chosen, variable, known) {
  return with_codes(chosen, variable, (chosen.get(variable) ?? []).filter((code) => known.has(code)));
}

/** @param {Codes} chosen @param {string} variable @param {string[]} codes @returns {Codes} */
function with_codes(chosen, variable, codes) {
  const others = without(chosen, variable);
  return codes.length > 0 ? sorted_map(others.set(variable, codes)) : others;
}
