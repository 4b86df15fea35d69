// A data set on a site: what readers are told about it, and the tables it answers with.

import { Answer, arrange, Question, with_impossible } from "./answer.js";
import { cube_of, size_of, slots_of, without_never } from "./cells.js";
import { CubeAxis } from "./cube.js";
import { at_level, counting_only, placed, removed } from "./moves.js";
import { Policy } from "./policy.js";
import { Query } from "./query.js";
import { Refusal } from "./refusals.js";
import { casefold, repr } from "./strings.js";
import { Statement } from "./statement.js";
import { DetailedVariable, OfferedVariable } from "./variables.js";

/**
 * @typedef {{bytes: (path: string) => Promise<Uint8Array>, json: (path: string) => Promise<any>,
 *   kernel: import("./kernel.js").Kernel}} Folder
 */

const MOST_OFFERS = 3;
const MOST_TRIED = 8;

export class Dataset {
  /**
   * @param {any} told The data set as `rules.py` writes it. @param {Folder} folder
   * @param {string} cells Path of the list of cell files.
   */
  constructor(told, folder, cells) {
    this.folder = folder;
    this.cells = cells;
    /** @type {string} */ this.name = told.name;
    /** @type {string} */ this.title = told.title;
    /** @type {any} */ this.about = told.about;
    /** @type {string} */ this.edition = told.edition;
    /** @type {string} */ this.updated = told.updated;
    /** @type {string[]} */ this.periods = told.periods;
    /** @type {string} */ this.time = told.time;
    /** @type {string[]} */ this.units = told.units;
    /** @type {boolean} */ this.is_integer = told.is_integer;
    /** @type {boolean} */ this.tells_margins = told.tells_margins;
    this.closed = false;
    this.is_live = false;
    this.source = { units: this.units, mode: "release-once", budget: null };
    this.variables = told.variables.map((/** @type {any} */ one) => new OfferedVariable(one));
    this.policy = new Policy(told.policy);
    this.statement = Statement.of(told.statement);
    this.first = Query.parse(told.first);
  }

  /**
   * Whether what readers are told holds all words, and the topic is this one.
   * @param {string[]} words @param {string} topic
   */
  holds(words, topic) {
    const { about } = this;
    const labels = this.variables.map((/** @type {OfferedVariable} */ v) => v.label);
    const text = casefold([this.name, this.title, about.description, about.topic, about.source, ...labels].join(" "));
    return (!topic || about.topic === topic) && words.every((word) => text.includes(casefold(word)));
  }

  /** The table that a query asks for; a `Refusal` says why there is none, and what would be. @param {Query} query */
  async answer(query) {
    /** @type {Question | undefined} */ let question;
    try {
      question = Question.checked(this, query);
      this.policy.check(question);
    } catch (refusal) {
      if (refusal instanceof Refusal) {
        const given = refusal.offers.filter(([, offered]) => this.is_offered(offered));
        const has_none = refusal.offers.length === 0;
        refusal.offers = question && has_none ? this.nearby_tables(question) : given.slice(0, MOST_OFFERS);
      }
      throw refusal;
    }
    const judged = this.policy.judge(arrange(with_impossible(await this.cube(question), question), question));
    return new Answer(this, question, judged.cube, judged.notes);
  }

  /** Whether public names and sizes allow a query. @param {Query} query */
  is_offered(query) {
    try {
      this.policy.check(Question.checked(this, query));
    } catch (refusal) {
      if (refusal instanceof Refusal) return false;
      throw refusal;
    }
    return true;
  }

  /** The crossing of a question, from one cell file or from one of each period. @param {Question} question */
  async cube(question) {
    const asked = question.in_public_order;
    const across = asked.filter((one) => !one.variable.is_time);
    const [time] = asked.filter((one) => one.variable.is_time);
    const index = await this.folder.json(this.cells);
    const key = across.map((one) => one.detail.base).join("*");
    const read = async (/** @type {string} */ name) => {
      const bytes = await this.folder.bytes(`files/${index.files[name]}.bin`);
      return this.folder.kernel.sums(bytes, across.map(size_of), across.map(slots_of));
    };
    const told = { unit: this.units[0], statement: this.statement_of(question), is_integer: this.is_integer };
    const axes = across.map((one) => new CubeAxis(one.name, one.variable.name, one.entries));
    const never = Object.hasOwn(index.never, key) ? index.never[key] : []; // a variable may be called `constructor`
    if (!time) return without_never(cube_of(await read(key), axes, told), across, never);
    const chosen = question.filters.includes(time)
      ? (question.query.where.get(time.name) ?? [])
      : time.entries.map((entry) => entry.code);
    const entries = time.entries.filter((entry) => chosen.includes(entry.code));
    const parts = await Promise.all(entries.map((entry) => read(`${key}@${entry.code}`)));
    const cube = cube_of(stacked(parts), [new CubeAxis(time.name, time.name, entries), ...axes], told);
    return without_never(cube, across, never.slice(1)).reorder(asked.map((one) => one.name));
  }

  /** What is said of a table: as of every table, and which crossing it is. @param {Question} question */
  statement_of(question) {
    const margins = question.details.join(":");
    const parameters = this.tells_margins ? [/** @type {[string, string]} */ (["margins", `[${repr(margins)}]`])] : [];
    const parameters_json = this.tells_margins ? `{"margins": [${JSON.stringify(margins)}]}` : "{}";
    return this.statement.with_step(
      { name: "tabulate", parameters: new Map(parameters), parameters_json, sentences: [] },
    );
  }

  /**
   * The largest tables near to the one asked for that would be answered.
   * @param {Question} question @returns {[string, Query][]}
   */
  nearby_tables(question) {
    const near = candidates(question).sort((one, other) => other.cells - one.cells);
    /** @type {Map<string, [string, Query]>} */
    const unique = new Map();
    for (const { label, query } of near) unique.set(query.address, [label, query]);
    const tried = [...unique.values()].slice(0, MOST_TRIED);
    return tried.filter(([, query]) => this.is_offered(query)).slice(0, MOST_OFFERS);
  }
}

/** Slots of several periods, one after the other. @param {import("./cells.js").Slots[]} parts */
function stacked(parts) {
  const values = Float64Array.from(parts.flatMap((part) => [...part.values]));
  const has_bits = parts.some((part) => part.possible);
  const bits = () => Uint8Array.from(parts.flatMap((part) => [...(part.possible ?? part.values.map(() => 1))]));
  return { values, possible: has_bits ? bits() : null };
}

/** Other tables with their public numbers of cells. @param {Question} question */
function candidates(question) {
  const { query, cells } = question;
  /** @type {{cells: number, label: string, query: Query}[]} */
  const found = [];
  const put = (/** @type {number} */ n, /** @type {string} */ label, /** @type {Query} */ other) =>
    found.push({ cells: n, label, query: other });
  if (query.groups.size > 0) put(cells, "without own groups", query.changed({ groups: new Map() }));
  for (const asked of question.filters) {
    if (asked.variable.is_time) continue;
    put(
      Math.floor(cells / asked.detail.cells),
      `without the filter on ${asked.label_inside}`,
      counting_only(query, asked.name, []),
    );
  }
  for (const one of placed(query, question.on_offer)) {
    const rest = Math.floor(cells / one.detail.cells);
    for (const detail of one.variable.details) {
      if (detail.cells < one.detail.cells) {
        put(rest * detail.cells, new DetailedVariable(one.variable, detail).label, at_level(query, one, detail));
      }
    }
    if (question.shown.length > 1) {
      put(rest, `without ${one.label_inside}`, counting_only(removed(query, one), one.name, []));
    }
  }
  return found;
}
