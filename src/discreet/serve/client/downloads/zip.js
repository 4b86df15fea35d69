// A zip archive whose parts lie in it as they are, with one date for all, so that equal tables are equal files.

import { utf8 } from "./table.js";

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
  return n >>> 0;
});
const DATE = 0x21; // the first day that a zip can tell, 1980-01-01
const IN_UTF8 = 0x800;

/** @param {Uint8Array} bytes */
function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ TABLE[(crc ^ byte) & 0xff];
  return ~crc >>> 0;
}

/** Numbers in so many bytes each, the least significant byte first. @param {[number, number][]} fields */
function packed(fields) {
  return fields.flatMap(([value, width]) => Array.from({ length: width }, (_, k) => (value >>> (8 * k)) & 0xff));
}

/** @param {[string, string][]} parts Names and texts. */
export function zip(parts) {
  const [files, directory] = [/** @type {Uint8Array[]} */ ([]), /** @type {Uint8Array[]} */ ([])];
  let offset = 0;
  for (const [name, text] of parts) {
    const [path, content] = [utf8(name), utf8(text)];
    const shared = /** @type {[number, number][]} */ ([
      [20, 2], [IN_UTF8, 2], [0, 2], [0, 2], [DATE, 2], [crc32(content), 4], [content.length, 4], [content.length, 4],
      [path.length, 2], [0, 2],
    ]);
    const file = [Uint8Array.from(packed([[0x04034b50, 4], ...shared])), path, content];
    const rest = /** @type {[number, number][]} */ ([[0, 2], [0, 2], [0, 2], [0, 4], [offset, 4]]);
    directory.push(Uint8Array.from(packed([[0x02014b50, 4], [20, 2], ...shared, ...rest])), path);
    files.push(...file);
    offset += total(file);
  }
  const size = total(directory);
  const end = packed([[0x06054b50, 4], [0, 4], [parts.length, 2], [parts.length, 2], [size, 4], [offset, 4], [0, 2]]);
  return joined([...files, ...directory, Uint8Array.from(end)]);
}

/** @param {Uint8Array[]} parts */
const total = (parts) => parts.reduce((sum, part) => sum + part.length, 0);

/** @param {Uint8Array[]} parts */
function joined(parts) {
  const found = new Uint8Array(total(parts));
  let place = 0;
  for (const part of parts) {
    found.set(part, place);
    place += part.length;
  }
  return found;
}
