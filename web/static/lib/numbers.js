/** Numbers as text, exactly as collector/numbers.py prints them; a table of cases tests both. */

/**
 * Units by the number from which on they are used.
 * @typedef {[number, string][]} Units
 */
/** @type {Units} */
const SIZES = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "KB"]];
/** @type {Units} */
const QUANTITIES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
/** A smaller relative change counts as no change. */
const CHANGE_MIN = 0.0005;
/** Digits that show whether a number lies exactly between two roundings. */
const EXACT = 60;

/** Whether `digits` are those of an exact half. */
function isHalf(digits) {
  return /^50*$/.test(digits);
}

/**
 * Return `number` with `digits` decimal places. Exact halves go to the even digit, as in Python.
 * @param {number} number
 * @param {number} digits
 * @returns {string}
 */
export function fixed(number, digits) {
  const exact = number.toFixed(digits + EXACT);
  const end = exact.length - EXACT;
  const truncated = exact.slice(0, end).replace(/\.$/, "");
  return isHalf(exact.slice(end)) && "02468".includes(truncated.slice(-1)) ? truncated : number.toFixed(digits);
}

/** Round to three digits, before a unit is chosen: 999.7 µs is 1.00 ms. */
function threeDigits(number) {
  if (!Number.isFinite(number) || number === 0) return number;
  const [mantissa, exponent] = number.toExponential(2 + EXACT).split("e");
  const end = mantissa.length - EXACT;
  const truncated = mantissa.slice(0, end);
  const isTruncated = isHalf(mantissa.slice(end)) && "02468".includes(truncated.slice(-1));
  return Number(isTruncated ? `${truncated}e${exponent}` : number.toPrecision(3));
}

/** Decimal places for three digits of a positive number, at most two. */
function places(value) {
  return value >= 100 ? 0 : value >= 10 ? 1 : 2;
}

function isMissing(number) {
  return number === null || number === undefined;
}

/** Bytes with about three digits and a unit in powers of 1000. */
export function size(number) {
  if (isMissing(number)) return "-";
  const rounded = threeDigits(number);
  for (const [unit, name] of SIZES) {
    if (Math.abs(rounded) >= unit) return `${fixed(number / unit, Math.abs(rounded) >= 100 * unit ? 0 : 1)} ${name}`;
  }
  return `${fixed(number, 0)} B`;
}

/** Bytes per second with a unit. */
export function rate(number) {
  return isMissing(number) ? "-" : `${size(number)}/s`;
}

/** A number of busy cores. */
export function cores(number) {
  return isMissing(number) ? "-" : fixed(number, 2);
}

/** @type {Units} */
const TIMES = [[1e3, "µs"], [1e6, "ms"], [1e9, "s"]];

/** Nanoseconds in a suitable unit, from ns to hours; "-" if unknown or not finite. */
export function duration(ns) {
  if (isMissing(ns) || !Number.isFinite(ns)) return "-";
  const rounded = threeDigits(ns);
  if (rounded < 1e3) return `${fixed(ns, 0)} ns`;
  for (const [unit, name] of TIMES) {
    if (rounded < unit * 1000 && !(name === "s" && rounded >= 100e9)) {
      return `${fixed(rounded / unit, places(rounded / unit))} ${name}`;
    }
  }
  const seconds = Math.trunc(ns / 1e9);
  const two = (value) => String(value).padStart(2, "0");
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${two(seconds % 60)}s`;
  return `${Math.floor(seconds / 3600)}h ${two(Math.floor((seconds % 3600) / 60))}m`;
}

/** A count with separators between thousands. */
export function count(number) {
  return isMissing(number) ? "-" : String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A count and what it counts, in the plural unless that is one. */
export function counted(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** A number with about three digits: 0.17, 2, 14.5, 3.21 M; "-" if it is not finite. */
export function quantity(number) {
  if (isMissing(number) || !Number.isFinite(number)) return "-";
  let value = threeDigits(number);
  let ending = "";
  for (const [unit, name] of QUANTITIES) {
    if (Math.abs(value) >= unit) {
      value /= unit;
      ending = ` ${name}`;
      break;
    }
  }
  if (Number.isInteger(value) && !ending) return fixed(value, 0);
  return fixed(value, places(Math.abs(value))) + ending;
}

/** A fraction as a percentage; small percentages get more digits. */
export function percent(share) {
  if (isMissing(share)) return "-";
  const number = share * 100;
  return `${fixed(number, Math.abs(number) >= 10 ? 0 : Math.abs(number) >= 0.1 || number === 0 ? 1 : 2)} %`;
}

/** The cost of tracing as a percentage; a measured cost below 0 is shown as 0. */
export function cost(share) {
  return percent(isMissing(share) ? null : Math.max(0, share));
}

/** The cost of tracing in a job with `stepsNs` ns in steps; for less than a minute of steps, as a time. */
export function totalCost(share, stepsNs) {
  return stepsNs < 60e9 ? duration(Math.max(0, share) * stepsNs) : cost(share);
}

/** How many times as long something takes: ×0.85, ×1.5, ×12. */
export function factor(ratio) {
  return `×${fixed(ratio, ratio < 1 ? 2 : ratio < 10 ? 1 : 0)}`;
}

/** A ratio of times as `12 % slower`, `3.0 times as long`, or `unchanged`. */
export function changeText(ratio) {
  if (Math.abs(ratio - 1) < CHANGE_MIN) return "unchanged";
  if (ratio >= 2) return `${fixed(ratio, 1)} times as long`;
  return `${percent(Math.abs(ratio - 1))} ${ratio > 1 ? "slower" : "faster"}`;
}

/** The local date and time, to the second. */
export function dateAndTime(ns) {
  if (isMissing(ns)) return "-";
  const date = new Date(ns / 1e6);
  const two = (value) => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${timeOfDay(ns)}`;
}

/** The local time of day, to the second. */
export function timeOfDay(ns) {
  const date = new Date(ns / 1e6);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}
