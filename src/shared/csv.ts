/** Writes lines of CSV (RFC 4180) for spreadsheets, without a cell that a spreadsheet reads as a formula. */

/** One line of CSV with its end, cells quoted where needed and never read as a formula by a spreadsheet. */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map(writeCell).join(',')}\r\n`;
}

const NUMBER = /^-?\d+(\.\d+)?$/;

/** OWASP's ASVS 5.0, requirement 1.2.10, and their forms in full width (no source was found, 2026-11-22). Names have no NUL. */
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/** Text that begins like a formula gets an apostrophe before it, which spreadsheets read as "this is text". */
function writeCell(text: string): string {
  const plain = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}
