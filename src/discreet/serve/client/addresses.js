// The addresses of a data set's pages: a folder's `index.html` each, since files have no other names.

import { quote, urlencode } from "./strings.js";

/** @typedef {import("./query.js").Query} Query */

/** @param {Query} query @param {string} [edit] @returns {[string, string][]} */
export const page_parameters = (query, edit = "") => [
  ...query.parameters,
  ...(edit ? [/** @type {[string, string]} */ (["edit", edit])] : []),
];

/** The query string of a table's page. @param {Query} query @param {string} [edit] */
export const page_address = (query, edit = "") => urlencode(page_parameters(query, edit), "[]|");

export class Addresses {
  /**
   * @param {string} root The path in front of all pages. @param {string} dataset
   * @param {string} ending What a page's folder ends in.
   */
  constructor(root, dataset, ending) {
    const folder = `${root}/d/${quote(dataset)}`;
    this.start = folder + ending;
    this.about = `${folder}/about${ending}`;
    this.table_path = `${folder}/table${ending}`;
  }
  /** @param {Query} query @param {string} [edit] */
  table(query, edit = "") {
    return `${this.table_path}?${page_address(query, edit)}`;
  }
  /** The table as a file, which the browser makes. @param {Query} query @param {string} ending */
  file(query, ending) {
    return `${this.table_path}?${query.address}&file=${ending}`;
  }
  /** @param {Query} query */
  chart(query) {
    return this.file(query, "svg");
  }
}
