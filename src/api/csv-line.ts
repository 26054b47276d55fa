/** Lines of CSV (RFC 4180), whose texts no spreadsheet takes for formulas. */

/** @param cells texts of any kind; those that begin like a formula get an apostrophe, as spreadsheets write such texts */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map(cellOf).join(',')}\r\n`;
}

const NUMBER = /^-?\d+(\.\d+)?$/;

function cellOf(text: string): string {
  const plain = /^[=+\-@\t\r]/.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

/** An amount without an exponent, exact to 10^-9; empty where there is none. */
export function decimalText(amount: number | null | undefined): string {
  return amount === null || amount === undefined ? '' : amount.toFixed(9).replace(/\.?0+$/, '');
}
