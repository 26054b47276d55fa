/** The CSV of reports: the response and its plain decimals. */
import { csvLine } from '../shared/csv.ts';
import { trimEnd } from '../shared/trim.ts';

/** @param lines the first one has the names of the columns */
export function csvResponse(lines: readonly (readonly string[])[], name: string): Response {
  return new Response(lines.map(csvLine).join(''), {
    headers: {
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': `attachment; filename="${name}.csv"`,
    },
  });
}

/** An amount without an exponent, exact to 10^-9. Empty for a missing amount. */
export function decimalText(amount: number | null | undefined): string {
  return amount === null || amount === undefined ? '' : trimEnd(trimEnd(amount.toFixed(9), '0'), '.');
}
