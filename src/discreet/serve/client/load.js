// Files of a site, each looked at before it is used: its name says what its content must be.

import { here } from "./kernel.js";

const NAMED = /(?:^|\/)([0-9a-f]{32})\.[a-z]+$/;
const SAID = {
  missing: (/** @type {string} */ path) => `The file ${path} of this site is missing.`,
  damaged: (/** @type {string} */ path) => `The file ${path} of this site is not as it was published.`,
  unreachable: (/** @type {string} */ path) => `The file ${path} of this site cannot be reached.`,
};

/** @typedef {keyof typeof SAID} FaultKind */

/** A file that cannot be had as it was published: nothing may be shown in its place. */
export class FileFault extends Error {
  /** @param {FaultKind} kind @param {string} path */
  constructor(kind, path) {
    super(SAID[kind](path));
    this.kind = kind;
    this.path = path;
  }
}

/** The files of one edition, each read once. */
export class Folder {
  /** @param {(path: string) => Promise<Uint8Array>} read @param {import("./kernel.js").Kernel} [kernel] */
  constructor(read, kernel = here) {
    this.read = read;
    this.kernel = kernel;
    /** @type {Map<string, Promise<Uint8Array>>} */
    this.kept = new Map();
    /** @type {Map<string, Promise<any>>} */
    this.parsed = new Map();
  }

  /** The content of a file, or a `FileFault`. @param {string} path */
  bytes(path) {
    return once(this.kept, path, () => this.checked(path));
  }

  /** A file of plain data. @param {string} path */
  json(path) {
    return once(this.parsed, path, async () => JSON.parse(new TextDecoder().decode(await this.bytes(path))));
  }

  /** @param {string} path */
  async checked(path) {
    const content = await this.read(path);
    if (NAMED.exec(path)?.[1] !== (await this.kernel.digest(content))) throw new FileFault("damaged", path);
    return content;
  }
}

/**
 * What is known of a path, or is found out now; a failure is not kept.
 * @template T @param {Map<string, Promise<T>>} kept @param {string} path @param {() => Promise<T>} find
 * @returns {Promise<T>}
 */
function once(kept, path, find) {
  const known = kept.get(path);
  if (known) return known;
  const found = find();
  kept.set(path, found);
  found.catch(() => kept.delete(path));
  return found;
}
