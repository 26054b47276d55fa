/** CSV (RFC 4180) for spreadsheets: plain decimals, and no cell that a spreadsheet reads as a formula. */

/** @param lines the first one has the names of the columns */
export function csvResponse(lines: readonly (readonly string[])[], name: string): Response {
  return new Response(lines.map(csvLine).join(''), {
    headers: {
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': `attachment; filename="${name}.csv"`,
    },
  });
}

export function csvLine(cells: readonly string[]): string {
  return `${cells.map(writeCell).join(',')}\r\n`;
}

const NUMBER = /^-?\d+(\.\d+)?$/;

/** OWASP's ASVS 5.0, requirement 1.2.10, and their forms in full width (no source was found, 2026-11-22). Names have no NUL. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;

/** Text that begins like a formula gets an apostrophe before it, which spreadsheets read as "this is text". */
function writeCell(text: string): string {
  const plain = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

/** An amount without an exponent, exact to 10^-9. Empty for a missing amount. */
export function decimalText(amount: number | null | undefined): string {
  return amount === null || amount === undefined ? '' : amount.toFixed(9).replace(/\.?0+$/, '');
}
