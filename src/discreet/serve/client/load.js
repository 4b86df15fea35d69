// Files of a site, each looked at before it is used: its name says what its content must be.

import { sha256 } from "./sha256.js";

const DIGITS = 32; // of a SHA-256 in hexadecimal, in the name of a file
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

/**
 * The first hexadecimal digits of the SHA-256 of some bytes.
 * Browsers have their own on pages from `https:` and from this machine alone.
 * @param {Uint8Array} bytes
 */
export async function digest_of(bytes) {
  const made = globalThis.crypto?.subtle
    ? new Uint8Array(await crypto.subtle.digest("SHA-256", /** @type {Uint8Array<ArrayBuffer>} */ (bytes)))
    : sha256(bytes);
  return Array.from(made, (byte) => byte.toString(16).padStart(2, "0")).join("").slice(0, DIGITS);
}

/** The files of one edition, each read once. */
export class Folder {
  /** @param {(path: string) => Promise<Uint8Array>} read @param {(bytes: Uint8Array) => Promise<string>} [digest] */
  constructor(read, digest = digest_of) {
    this.read = read;
    this.digest = digest;
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
    if (NAMED.exec(path)?.[1] !== (await this.digest(content))) throw new FileFault("damaged", path);
    return content;
  }
}

/** What is known of a path, or is found out now; a failure is not kept. @template T @param {Map<string, Promise<T>>} kept @param {string} path @param {() => Promise<T>} find @returns {Promise<T>} */
function once(kept, path, find) {
  const known = kept.get(path);
  if (known) return known;
  const found = find();
  kept.set(path, found);
  found.catch(() => kept.delete(path));
  return found;
}
