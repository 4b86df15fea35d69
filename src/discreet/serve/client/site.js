// A site of files: its data sets and texts, read when they are asked for.

import { Addresses } from "./addresses.js";
import { Dataset } from "./dataset.js";
import { Texts } from "./texts.js";

/** @typedef {import("./dataset.js").Folder} Folder */

export class Site {
  /**
   * @param {any} config What `rules.py` writes of a site. @param {Folder} folder @param {any} templates
   * @param {{root?: string, app?: string, base?: string, ending?: string, today?: () => Date}} [place]
   */
  constructor(config, folder, templates, place = {}) {
    this.config = config;
    this.folder = folder;
    this.templates = templates;
    /** @type {string} */ this.title = config.title;
    this.root = place.root ?? "";
    this.app = place.app ?? `${this.root}/static`;
    /** @type {string} */ this.base = config.address || place.base || this.root;
    this.ending = place.ending ?? "/index.html";
    this.today = place.today ?? (() => new Date());
    /** @type {Map<string, Promise<any>>} */
    this.kept = new Map();
  }

  /** What is made once. @template T @param {string} key @param {() => Promise<T>} make @returns {Promise<T>} */
  async once(key, make) {
    let found = this.kept.get(key);
    if (!found) {
      found = make();
      this.kept.set(key, found);
      found.catch(() => this.kept.delete(key)); // what failed is tried again
    }
    return found;
  }

  /** The texts of a language. @param {string} code @returns {Promise<Texts>} */
  texts(code) {
    return this.once(`texts ${code}`, async () => new Texts(await this.folder.json(this.config.texts[code])));
  }

  /**
   * The data set of this name, with its labels in a language.
   * @param {string} name @param {string} code @returns {Promise<Dataset>}
   */
  dataset(name, code) {
    const told = this.config.datasets[name];
    return this.once(
      `${code} ${name}`,
      async () => new Dataset(await this.folder.json(told.rules[code]), this.folder, told.cells),
    );
  }

  /** @param {string} code */
  datasets(code) {
    return Promise.all(Object.keys(this.config.datasets).map((name) => this.dataset(name, code)));
  }

  /** @param {string} name @param {string} [root] */
  at(name, root = this.root) {
    return new Addresses(root, name, this.ending);
  }

  /** The address of a page, `d/census/about`. @param {string} path */
  link(path) {
    if (this.ending === "") return `${this.root}/${path}`;
    return `${this.root}${path && "/"}${path}${this.ending}`;
  }
}
