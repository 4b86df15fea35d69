// Addresses of pages and files, and what readers are told of a table beside its figures.

import { page_address } from "./addresses.js";
import { caption_of, citation_of, notes_of, populations_of } from "./wording.js";

/** @typedef {import("./answer.js").Answer} Answer */
/** @typedef {import("./cube.js").Cube} Cube */

const SHARES = /** @type {Record<string, string>} */ (
  { row: "row_percent", column: "column_percent", total: "total_percent" }
);

/** What readers are told of the tables of a site, in a language. */
export class TableDescriber {
  /** @param {import("./site.js").Site} site @param {any} texts */
  constructor(site, texts) {
    this.site = site;
    this.texts = texts;
  }

  /** The page of a table, as it is cited. @param {Answer} answer */
  address(answer) {
    return `${this.site.at(answer.dataset.name, this.site.base).table_path}?${page_address(answer.query)}`;
  }

  /** How a table is cited today. @param {Answer} answer */
  citation(answer) {
    return citation_of(answer, this.site.title, this.address(answer), this.site.today(), this.texts);
  }

  /** How an answer is written to a file. @param {Answer} answer @param {string} file @param {string | null} labels */
  options(answer, file, labels) {
    const measure = SHARES[answer.query.view.show] ?? "";
    return {
      layout: null,
      labels,
      columns: answer.columns,
      measure,
      separator: ",",
      file,
      time: answer.dataset.time,
      about: this.about(answer),
    };
  }

  /** @param {Answer} answer */
  about(answer) {
    const { dataset } = answer;
    const { texts } = this;
    const notes = notes_of(answer, texts).filter((note) => note.title !== texts.notes.footnotes);
    return {
      title: [caption_of(answer, texts), ...populations_of(answer)].join(", "),
      name: dataset.name,
      source: dataset.about.source || this.site.title,
      licence: dataset.about.licence,
      contact: dataset.about.contact || this.site.config.contact,
      edition: dataset.edition,
      updated: dataset.updated,
      address: this.address(answer),
      citation: this.citation(answer),
      notes: notes.flatMap((note) => note.sentences.map((said) => said.text)),
      footnotes: dataset.about.footnotes,
      language: texts.code,
    };
  }
}

/**
 * The figures that a file holds: as the view shows them, with every category of layers.
 * @param {Answer} answer @returns {Cube}
 */
export function file_cube(answer) {
  let cube = answer.shown.with_labels(answer.question.shown.map((asked) => asked.variable.label));
  if (answer.query.view.totals) return cube;
  for (const name of [...answer.rows, ...answer.columns]) {
    const codes = cube.axis(name).entries.filter((entry) => !entry.is_total).map((entry) => entry.code);
    if (codes.length > 0) cube = cube.select(name, codes);
  }
  return cube;
}

/** What a file of a table is called. @param {Answer} answer @param {string} ending */
export function file_name(answer, ending) {
  const name = `${answer.dataset.name}-${[...answer.rows, ...answer.columns].join("-")}`;
  return `${name.replace(/[^A-Za-z0-9_-]+/g, "-").replace(/^-+|-+$/g, "")}${ending}`;
}
