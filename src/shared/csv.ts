/** Writes lines of CSV (RFC 4180) for spreadsheets, without a cell that a spreadsheet reads as a formula. */
import { lazyPattern } from './lazy-pattern.ts';

/** One line of CSV with its end, cells quoted where needed and never read as a formula by a spreadsheet. */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map(writeCell).join(',')}\r\n`;
}

const NUMBER = /^-?\d+(\.\d+)?$/;

/** Nothing is seen of these at the beginning of a cell: controls, spaces, marks without a width, blanks that count as letters. */
const UNSEEN = lazyPattern(
  '^[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Z}\\p{M}\\p{Default_Ignorable_Code_Point}\\u2800]*',
  'u',
);
/** OWASP's ASVS 5.0, requirement 1.2.10. */
const FORMULA = /^[=+\-@]/;
const LINE_OR_TAB = /[\t\r\n]/;
/**
 * Look-alikes of `=` and `-` that have no form in common with them: those of `=` are of Unicode's confusables.txt, with the double lines.
 * All others, such as the full width, become plain ones by compatibility.
 */
const LOOK_ALIKES = /^[\u1400\u2e40\u30a0\ua4ff\u2550\u268c\u2212]/;

/** Text that begins like a formula gets an apostrophe before it, which spreadsheets read as "this is text". */
function writeCell(text: string): string {
  const plain = looksLikeFormula(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

function looksLikeFormula(text: string): boolean {
  const unseen = UNSEEN().exec(text)?.[0] ?? '';
  const first = String.fromCodePoint(text.codePointAt(unseen.length) ?? 0);
  return LINE_OR_TAB.test(unseen) || FORMULA.test(first.normalize('NFKD')) || LOOK_ALIKES.test(first);
}
