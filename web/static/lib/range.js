/** The least and the largest of many values: those of Math take only as many arguments as the stack holds. */

/** @param {number[]} values */
export function least(values) {
  return values.reduce((found, value) => (value < found ? value : found), Infinity);
}

/** @param {number[]} values */
export function most(values) {
  return values.reduce((found, value) => (value > found ? value : found), -Infinity);
}
