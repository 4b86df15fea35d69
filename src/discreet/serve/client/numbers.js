// Numbers as Python writes and rounds them, so that a page in the browser equals the server's.

/**
 * Signs of a language, as `[numbers]` of its file has them.
 * @typedef {{thousands: string, decimal: string, minus: string, percent: string}} Signs
 */

/**
 * `f"{value:.{decimals}f}"`: exact ties go to the even digit, where `toFixed` goes away from zero.
 * @param {number} value
 * @param {number} decimals
 * @returns {string}
 */
export function format_fixed(value, decimals) {
  if (Number.isNaN(value)) return "nan";
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  return sign + fixed_size(Math.abs(value), decimals);
}

/** @type {(size: number, decimals: number) => string} */
function fixed_size(size, decimals) {
  if (size === Infinity) return "inf";
  if (size >= 2 ** 53) {
    return BigInt(size).toString() + (decimals ? `.${"0".repeat(decimals)}` : "");
  }
  const text = size.toFixed(decimals);
  // A tie is an odd multiple of 1 / 2^(decimals + 1): no other number has 5 as its last digit.
  const is_tie = (size * 2 ** (decimals + 1)) % 2 === 1;
  const last = Number(text[text.length - 1]);
  return is_tie && last % 2 ? text.slice(0, -1) + (last - 1) : text;
}

/**
 * `f"{value:,.{decimals}f}"`.
 * @param {number} value
 * @param {number} [decimals]
 * @returns {string}
 */
export function format_grouped(value, decimals = 0) {
  const [whole, ...rest] = format_fixed(value, decimals).split(".");
  return [group_digits(whole), ...rest].join(".");
}

/** @type {(whole: string) => string} */
const group_digits = (whole) => whole.replace(/\d(?=(\d{3})+$)/g, "$&,");

/** How numbers are written in a language. */
export class Numbers {
  /** @param {Signs} signs */
  constructor(signs) {
    this.signs = signs;
  }

  /**
   * A number with so many decimals.
   * @param {number} value
   * @param {number} [decimals]
   * @returns {string}
   */
  format(value, decimals = 0) {
    let text = format_grouped(value, decimals);
    if (text.startsWith("-") && /^[-0.,]*$/.test(text)) text = text.slice(1);
    return this.localize(text);
  }

  /**
   * A number in English with the signs of this language.
   * @param {string} english
   * @returns {string}
   */
  localize(english) {
    const { thousands, decimal, minus } = this.signs;
    return english.replace(/[,.-]/g, (s) => (s === "," ? thousands : s === "." ? decimal : minus));
  }

  /**
   * A percentage with its sign.
   * @param {number} value
   * @param {number} [decimals]
   * @returns {string}
   */
  in_percent(value, decimals = 1) {
    return this.signs.percent.replace("{}", () => this.format(value, decimals));
  }
}

/**
 * To the nearest whole number, ties to the even one: Python's `round` and NumPy's `rint`.
 * @param {number} value
 * @returns {number}
 */
export function round_even(value) {
  const below = Math.floor(value);
  const part = value - below;
  const is_down = part === 0.5 ? below % 2 === 0 : !(part > 0.5);
  return is_down ? below : below + 1 || Math.sign(value) * 0;
}

/** `10.0 ** n` to the last bit, which `**` misses. @type {(n: number) => number} */
export const power_of_ten = (n) => Number(`1e${n}`);

/**
 * NumPy's `round`, which scales, rounds and scales back.
 * @param {number} value
 * @param {number} decimals
 * @returns {number}
 */
export function round_to(value, decimals) {
  const scale = power_of_ten(decimals);
  return round_even(value * scale) / scale;
}

/**
 * NumPy's `spacing`: the distance to the next number away from zero.
 * @param {number} value
 * @returns {number}
 */
export function spacing(value) {
  if (!Number.isFinite(value)) return NaN;
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, Math.abs(value));
  const exponent = bits.getUint16(0) >> 4;
  return exponent > 52 ? 2 ** (exponent - 1075) : 2 ** (Math.max(exponent, 1) - 1075);
}

const MOST_DECIMALS = 6;
const NOISE = 64; // units in the last place that a sum of many numbers may be off

/**
 * Sums of decimals as they were meant, 0.3 for 0.30000000000000004; see `drop_float_noise`.
 * @param {number[]} values
 * @param {boolean} [as_largest] Whether each may be off by as much as the largest, since negative parts cancel.
 * @returns {number[]}
 */
export function drop_float_noise(values, as_largest = false) {
  if (!values.every(Number.isFinite)) return values;
  const largest = as_largest ? values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) : 0;
  const slack = values.map((value) => NOISE * spacing(as_largest ? largest : value));
  for (let decimals = 0; decimals <= MOST_DECIMALS; decimals++) {
    const rounded = values.map((value) => round_to(value, decimals));
    if (values.every((value, k) => Math.abs(value - rounded[k]) <= slack[k])) {
      return slack.every((one) => one < 0.01 * power_of_ten(-decimals)) ? rounded : values;
    }
  }
  return values;
}

/**
 * As many decimals as whole numbers, tenths or hundredths need.
 * @param {Iterable<number>} values
 * @param {boolean} [is_integer] Whether they are whole by their kind.
 * @param {number} [most]
 * @returns {number}
 */
export function decimals_of(values, is_integer = false, most = 2) {
  if (is_integer) return 0;
  const finite = [...values].filter(Number.isFinite);
  for (let decimals = 0; decimals < most; decimals++) {
    if (finite.every((value) => Math.abs(value - round_to(value, decimals)) <= 1e-9)) {
      return decimals;
    }
  }
  return most;
}

/**
 * `repr` of a float: the shortest digits that read back as it, `1e+16` and `1.0` as Python does.
 * @param {number} value
 * @returns {string}
 */
export function repr_float(value) {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  const { sign, digits, exponent } = shortest_digits(value);
  if (exponent < -4 || exponent >= 16) {
    return sign + with_power(digits, exponent);
  }
  return sign + place_digits(digits, exponent);
}

/**
 * `f"{value:g}"`, or `f"{value:,g}"` where `has_groups`: at most six digits that mean something.
 * @param {number} value
 * @param {boolean} [has_groups]
 * @returns {string}
 */
export function format_general(value, has_groups = false) {
  if (!Number.isFinite(value)) return repr_float(value);
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  const [mantissa, power] = six_digits(Math.abs(value)).split("e");
  const digits = mantissa.replace(".", "").replace(/0+$/, "") || "0";
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 6) return sign + with_power(digits, exponent);
  const [whole, part] = place_digits(digits, exponent).split(".");
  const shown = has_groups ? group_digits(whole) : whole;
  return sign + (Number(part) ? `${shown}.${part}` : shown);
}

/** Six digits and a power of ten; ties go to the even digit. @type {(size: number) => string} */
function six_digits(size) {
  const text = size.toExponential(5);
  const [mantissa, power] = text.split("e");
  const is_tie = /^\d\.\d{5}50*e/.test(size.toExponential(60));
  const last = Number(mantissa[6]);
  return is_tie && last % 2 ? `${mantissa.slice(0, 6)}${last - 1}e${power}` : text;
}

/** @type {(value: number) => {sign: string, digits: string, exponent: number}} */
export function shortest_digits(value) {
  const [mantissa, exponent] = Math.abs(value).toExponential().split("e");
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  return { sign, digits: mantissa.replace(".", ""), exponent: Number(exponent) };
}

/** @type {(digits: string, exponent: number) => string} */
function with_power(digits, exponent) {
  const rest = digits.slice(1);
  const power = String(Math.abs(exponent)).padStart(2, "0");
  return `${digits[0]}${rest && `.${rest}`}e${exponent < 0 ? "-" : "+"}${power}`;
}

/** @type {(digits: string, exponent: number) => string} */
function place_digits(digits, exponent) {
  if (exponent < 0) return `0.${"0".repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return `${whole}.${digits.slice(exponent + 1) || "0"}`;
}
