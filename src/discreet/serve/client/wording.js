// What pages say: a table in words, its notes, and variables and categories in the panel.

import { in_one_period, shares_over } from "./answer.js";
import { CubeEntry } from "./cube.js";
import { layer_of } from "./grid.js";
import * as moves from "./moves.js";
import { capitalized, sorted_map } from "./python.js";
import { fill } from "./strings.js";

/** @typedef {import("./answer.js").Answer} Answer */
/** @typedef {import("./moves.js").Placed} Placed */
/** @typedef {import("./query.js").Query} Query */
/** @typedef {import("./statement.js").Sentence} Sentence */
/** @typedef {import("./statement.js").Statement} Statement */
/** @typedef {import("./variables.js").Detail} Detail */
/** @typedef {import("./variables.js").DetailedVariable} DetailedVariable */
/** @typedef {import("./variables.js").OfferedVariable} OfferedVariable */
/** @typedef {import("./texts.js").LanguageText} LanguageText */
/** @typedef {any} Texts */
/** @typedef {import("./dataset.js").Dataset} Dataset */
/** @typedef {{title: string, sentences: LanguageText[]}} TableNote */

const OFF = ["moves-at-most", "mean-zero", "variance", "never-published", "threshold", "multiples"];
const SUMS = ["adds-up", "need-not-add-up"];
export const PICK = "pick";
export const WHERE = "where";
export const GROUP = "group";
export const NEW_LABEL = "new.label";
export const NEW_CODE = "new.code";
export const NEW_OF = "new.of";

/**
 * What the table shows: rows by columns, each with its level where there is a choice.
 * @param {Answer} answer @param {Texts} texts @returns {string}
 */
export function title_of(answer, texts) {
  const { question: asked } = answer;
  const said = texts.table;
  const sides = [asked.rows, asked.columns].filter((side) => side.length > 0).map((side) => join_labels(side, texts));
  const title = sides.join(said.by) || said.total;
  return capitalized(
    asked.layers.length > 0 ? fill(said.layered, { title, layers: join_labels(asked.layers, texts) }) : title,
  );
}

/** The title with what the figures are. @param {Answer} answer @param {Texts} texts @returns {string} */
export function caption_of(answer, texts) {
  const title = title_of(answer, texts);
  const unit = unit_label(answer.cube.unit, texts);
  const { show } = answer.query.view;
  if (show === "count") return fill(texts.table.caption, { unit, title });
  const share = show === "total" ? texts.table.total_share : texts.table[show];
  return fill(texts.table.caption_share, { share, unit: texts.units[`${answer.cube.unit}_of`] ?? unit, title });
}

/** For each layer its variable and the category that is shown. @param {Answer} answer */
export function layers_of(answer) {
  return answer.question.layers.map((asked) => {
    const axis = answer.cube.axis(asked.name);
    return `${asked.variable.label}: ${axis.entries[axis.place(layer_of(axis, answer.query.view))].label}`;
  });
}

/** For each filter its variable and the categories that are counted. @param {Answer} answer */
export function populations_of(answer) {
  return [...sorted_map(answer.query.where)].map(([name, codes]) => {
    const { variable } = answer.question.asked(name);
    return `${variable.label}: ${variable.labels_of(codes).join(", ")}`;
  });
}

/**
 * How the table is cited.
 * @param {Answer} answer @param {string} publisher @param {string} address @param {Date} day @param {Texts} texts
 * @returns {string}
 */
export function citation_of(answer, publisher, address, day, texts) {
  const { dataset } = answer;
  return fill(texts.take.citation, {
    publisher: dataset.about.source || publisher,
    title: [title_of(answer, texts), ...populations_of(answer)].join(", "),
    dataset: dataset.title,
    edition: dataset.edition,
    date: written_date(day, texts),
    address,
  });
}

/** A day as readers of a language write it. @param {Date} day @param {Texts} texts @returns {string} */
export function written_date(day, texts) {
  const month = texts.site.months[day.getUTCMonth()];
  return fill(texts.site.date, { day: day.getUTCDate(), month, year: day.getUTCFullYear() });
}

/** What is said under a table, for every reader. @param {Answer} answer @param {Texts} texts @returns {TableNote[]} */
export function notes_of(answer, texts) {
  const { dataset } = answer;
  const said = texts.notes;
  const shown = [
    ...answer.groups.map((text) => ({ text, language: "" })),
    ...answer.notes.map((note) => texts.translate(note)),
  ];
  const footnotes = dataset.about.footnotes.map((/** @type {string} */ text) => ({ text, language: "" }));
  return [
    ...statement_notes(answer.cube.statement, texts),
    { title: said.shown, sentences: shown },
    { title: said.unit, sentences: units_of(answer, texts) },
    { title: said.footnotes, sentences: footnotes },
  ].filter((note) => note.sentences.length > 0);
}

/**
 * A statement in plain words, under the questions that readers have.
 * @param {Statement} statement @param {Texts} texts @returns {TableNote[]}
 */
export function statement_notes(statement, texts) {
  const said = texts.notes;
  const { sentences } = statement;
  const off = plain(sentences.filter((s) => OFF.includes(s.kind)), texts);
  if (!statement.says("moves-at-most")) off.push({ text: said.no_reach, language: texts.code });
  const others = sentences.filter((s) => ![...OFF, ...SUMS, "same-everywhere"].includes(s.kind));
  return [
    { title: said.done, sentences: [...plain(others, texts), { text: said.once, language: texts.code }] },
    { title: said.off, sentences: off },
    { title: said.sums, sentences: plain(sentences.filter((s) => SUMS.includes(s.kind)), texts) },
  ].filter((note) => note.sentences.length > 0);
}

/** @param {DetailedVariable[]} asked @param {Texts} texts */
const join_labels = (asked, texts) => asked.map((one) => label_of(one, texts)).join(texts.table.and_);

/**
 * A variable inside a sentence, with its level where there is a choice.
 * @param {DetailedVariable} asked @param {Texts} texts
 */
function label_of(asked, texts) {
  const level = texts.translate(asked.detail.label).text;
  return level ? `${asked.variable.label_inside} (${level})` : asked.variable.label_inside;
}

/**
 * What the figures are; percentages of counts need no word on counts.
 * @param {Answer} answer @param {Texts} texts @returns {LanguageText[]}
 */
function units_of(answer, texts) {
  const { show } = answer.query.view;
  const of_unit = show !== "count" && answer.cube.unit === "count" ? [] : [`${answer.cube.unit}_note`];
  const of_share = show !== "count" ? [`${show}_note`] : [];
  const found = [...of_unit, ...of_share].map((name) => texts.units[name] ?? "");
  return found.filter(Boolean).map((text) => ({ text, language: texts.code }));
}

/** @param {Sentence[]} sentences @param {Texts} texts @returns {LanguageText[]} */
function plain(sentences, texts) {
  return [...new Set(sentences.map((sentence) => sentence.plain).filter(Boolean))].map((text) => texts.translate(text));
}

/** A level's name for readers. @param {Detail} detail @param {Texts} texts */
export const detail_label = (detail, texts) => capitalized(texts.translate(detail.label).text);

/**
 * How many categories or groups of a variable are shown.
 * @param {Query} query @param {Placed} one @param {Texts} texts @returns {string}
 */
export function summary_of(query, one, texts) {
  const groups = query.groups.get(one.name);
  const picked = query.picked.get(one.name);
  if (groups) return texts.count("groups", groups.size);
  const n = one.entries.filter((entry) => !entry.is_total).length;
  if (!picked) return texts.count("categories", n);
  const codes = new Set(one.entries.map((entry) => entry.code));
  const shown = new Set(picked.filter((code) => codes.has(code))).size;
  return fill(texts.build.categories, { shown: texts.numbers.format(shown), all: texts.numbers.format(n) });
}

/**
 * The categories of a layer, one of which is shown; the total, or the last period, first.
 * @param {Query} query @param {Placed} one
 */
export function layer_entries(query, one) {
  const groups = query.groups.get(one.name);
  const picked = query.picked.get(one.name);
  if (one.variable.is_time) return [...one.entries].reverse().filter((e) => !picked || picked.includes(e.code));
  if (groups) return [one.entries[0], ...[...groups.keys()].map((label) => new CubeEntry(label, label, 1, false))];
  return one.entries.filter((e) => !picked || e.is_total || picked.includes(e.code));
}

/** What a search finds a variable by. @param {OfferedVariable} variable */
export function search_text(variable) {
  return [variable.label, variable.name, ...variable.details.map((detail) => detail.label)].join(" ").toLowerCase();
}

/**
 * How many categories there are, and whether they have a total; periods have none.
 * @param {CubeEntry[]} entries @param {Texts} texts @returns {string}
 */
export function size_of(entries, texts) {
  const categories = entries.filter((entry) => !entry.is_total).length;
  const said = texts.count("categories", categories);
  return categories === entries.length ? said : fill(texts.notes.variables_help, said);
}

/** The limits on the size of a table. @param {Dataset} dataset @param {Texts} texts @returns {string} */
export function limits_of(dataset, texts) {
  const shown = [
    texts.count("variables", dataset.policy.max_variables),
    texts.count("cells", dataset.policy.max_cells),
  ];
  return fill(texts.build.limits, shown.join(texts.table.and_));
}

/**
 * Whether visitors may put groups of a variable into a table, their own or the office's.
 * @param {Dataset} dataset @param {OfferedVariable} variable
 */
export function may_group(dataset, variable) {
  const { policy } = dataset;
  if (variable.is_time) return false;
  if (policy.groups === "fixed") return policy.fixed_groups.has(variable.name);
  return policy.groups === "own" && variable.details[variable.details.length - 1].last_level > 2;
}

/** What is counted, for readers. @param {string} unit @param {Texts} texts @returns {string} */
export const unit_label = (unit, texts) => texts.units[unit] ?? unit;

/** A form with a tick for every category. */
class CategoryList {
  /** @param {string} kind @param {OfferedVariable} variable @param {CubeEntry[]} entries @param {string[]} ticked */
  constructor(kind, variable, entries, ticked) {
    this.kind = kind;
    this.variable = variable;
    this.entries = entries;
    this.ticked = new Set(ticked);
    this.name = variable.name;
    this.edit = `${kind}.${variable.name}`;
    this.parameter = kind === GROUP ? NEW_CODE : this.edit;
  }
}

/**
 * The list that `edit` names; none where it names nothing that can be chosen.
 * @param {Dataset} dataset @param {Query} query @param {string} edit
 */
export function category_list(dataset, query, edit) {
  const [kind] = edit.split(".", 1);
  const name = edit.slice(kind.length + 1);
  const variable = dataset.variables.find((/** @type {OfferedVariable} */ v) => v.name === name);
  if (![PICK, WHERE, GROUP].includes(kind) || !variable) return null;
  if (kind === GROUP && !may_group(dataset, variable)) return null;
  const found = moves.placed(query, dataset.variables).find((one) => one.name === name);
  const detail = found?.detail ?? (kind === WHERE ? variable.details[0] : null);
  if (!detail) return null;
  const entries = detail.entries.filter((/** @type {CubeEntry} */ entry) => !entry.is_total);
  const everything = entries.map((/** @type {CubeEntry} */ entry) => entry.code);
  const of_query = kind === WHERE ? (query.where.get(name) ?? []) : [];
  const ticked = kind === PICK ? (query.picked.get(name) ?? everything) : of_query;
  return new CategoryList(kind, variable, entries, ticked);
}

/** Figures, and the percentages that the table has. @param {Dataset} dataset @param {Query} query */
export const shows_of = (dataset, query) => ["count", ...shares_over(query, dataset.variables).keys()];

/**
 * The query with its period, and without choices that choose everything or mean nothing.
 * @param {Dataset} dataset @param {Query} query
 */
export function complete(dataset, query) {
  query = in_one_period(query, dataset.variables);
  const { show } = query.view;
  if (!shows_of(dataset, query).includes(show) && query.shows.includes(show)) query = query.changed({ show: "count" });
  for (const one of moves.placed(query, dataset.variables)) {
    const picked = query.picked.get(one.name) ?? [];
    const codes = one.entries.filter((entry) => !entry.is_total).map((entry) => entry.code);
    if (codes.every((code) => picked.includes(code))) query = moves.pick(query, one.name, []);
  }
  return query;
}
