// SHA-256 (FIPS 180-4), for pages that are read over plain `http:`, where browsers lend none.

const [CONSTANTS, START] = [roots(64, 1 / 3), roots(8, 1 / 2)];

/** The first 32 bits behind the point of roots of the first primes. @param {number} n @param {number} power */
function roots(n, power) {
  /** @type {number[]} */
  const primes = [];
  for (let k = 2; primes.length < n; k++) if (primes.every((prime) => k % prime)) primes.push(k);
  return Uint32Array.from(primes, (prime) => ((prime ** power) % 1) * 2 ** 32);
}

/** @param {number} word @param {number} n */
const turned = (word, n) => (word >>> n) | (word << (32 - n));

/** @param {Uint8Array} bytes */
export function sha256(bytes) {
  const padded = new Uint8Array(((bytes.length + 72) >> 6) << 6);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(padded.length - 4, bytes.length << 3);
  const state = START.slice();
  const words = new Uint32Array(64);
  for (let block = 0; block < padded.length; block += 64) {
    for (let k = 0; k < 16; k++) words[k] = view.getUint32(block + 4 * k);
    mix(state, words);
  }
  const found = new DataView(new ArrayBuffer(32));
  state.forEach((word, k) => found.setUint32(4 * k, word));
  return new Uint8Array(found.buffer);
}

/** @param {Uint32Array} state @param {Uint32Array} words The first sixteen are a block of the message. */
function mix(state, words) {
  for (let k = 16; k < 64; k++) {
    const [before, last] = [words[k - 15], words[k - 2]];
    const near = turned(before, 7) ^ turned(before, 18) ^ (before >>> 3);
    const far = turned(last, 17) ^ turned(last, 19) ^ (last >>> 10);
    words[k] = words[k - 16] + near + words[k - 7] + far;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let k = 0; k < 64; k++) {
    const chosen = (e & f) ^ (~e & g);
    const one = (h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + chosen + CONSTANTS[k] + words[k]) | 0;
    const most = (a & b) ^ (a & c) ^ (b & c);
    const other = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + most;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + other) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, k) => (state[k] += word));
}
