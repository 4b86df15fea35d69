// What is worked out beside the page, in a thread of its own: digests of files, and sums of their cells.
// The thread reads nothing by itself: the page hands it what was read.

import { read_cells, summed } from "./cells.js";
import { product } from "./cube.js";
import { sha256 } from "./sha256.js";

/** @typedef {import("./cells.js").Slots} Slots */
/**
 * @typedef {Object} Kernel
 * @property {(bytes: Uint8Array) => Promise<string>} digest The first digits of a SHA-256.
 * @property {(bytes: Uint8Array, shape: number[], parts: number[][][]) => Promise<Slots>} sums
 *   A cell file's slots, added up along each variable.
 */

const DIGITS = 32; // of a SHA-256 in hexadecimal, in the name of a file

/** Browsers have a digest of their own on pages from `https:` and from this machine alone. @param {Uint8Array} bytes */
async function digest(bytes) {
  const made = globalThis.crypto?.subtle
    ? new Uint8Array(await crypto.subtle.digest("SHA-256", /** @type {Uint8Array<ArrayBuffer>} */ (bytes)))
    : sha256(bytes);
  return Array.from(made, (byte) => byte.toString(16).padStart(2, "0")).join("").slice(0, DIGITS);
}

/** The same in the thread that asks. @type {Kernel} */
export const here = {
  digest,
  sums: async (bytes, shape, parts) => summed(read_cells(bytes, product(shape)), shape, parts),
};

/**
 * A thread that works for a page; until it has started, and where it cannot, the page works itself.
 * @implements {Kernel}
 */
export class Beside {
  /** @param {URL} address The client, which finds out that it is in a thread. */
  constructor(address) {
    this.is_ready = false;
    /**
     * @type {Map<number, {kind: keyof Kernel, given: any[], resolve: (found: any) => void,
     *   reject: (error: Error) => void}>}
     */
    this.waiting = new Map();
    this.asked = 0;
    this.worker = new Worker(address, { type: "module" });
    this.worker.onmessage = ({ data }) => this.take(data);
    this.worker.onerror = () => this.give_up();
  }

  /** @param {{id: number, found?: any, fault?: string}} said */
  take({ id, found, fault }) {
    if (id === 0) {
      this.is_ready = true;
      return;
    }
    const question = this.waiting.get(id);
    this.waiting.delete(id);
    if (fault === undefined) question?.resolve(found);
    else question?.reject(new Error(fault));
  }

  give_up() {
    this.is_ready = false;
    const left = [...this.waiting.values()];
    this.waiting.clear();
    for (const { kind, given, resolve, reject } of left) work(kind, given).then(resolve, reject);
  }

  /** @param {keyof Kernel} kind @param {any[]} given @returns {Promise<any>} */
  ask(kind, given) {
    if (!this.is_ready) return work(kind, given);
    const id = ++this.asked;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { kind, given, resolve, reject });
      this.worker.postMessage({ id, kind, given });
    });
  }

  /** @param {Uint8Array} bytes */
  digest(bytes) {
    return this.ask("digest", [bytes]);
  }
  /** @param {Uint8Array} bytes @param {number[]} shape @param {number[][][]} parts */
  sums(bytes, shape, parts) {
    return this.ask("sums", [bytes, shape, parts]);
  }
}

/** @param {keyof Kernel} kind @param {any[]} given @returns {Promise<any>} */
const work = (kind, given) => /** @type {any} */ (here[kind])(...given);

if ("importScripts" in globalThis) {
  globalThis.addEventListener("message", ({ data: { id, kind, given } }) => {
    work(kind, given).then(
      (found) => postMessage({ id, found }),
      (error) => postMessage({ id, fault: error.message }),
    );
  });
  postMessage({ id: 0 });
}
