/** Reports as CSV (RFC 4180), for spreadsheets: plain decimals, and no cell that is taken for a formula (L7). */
import { COUNTS, type Group, type Row } from '../metering/report.ts';
import { csvLine, decimalText } from './csv-line.ts';

const MEDIANS = ['median_first_token_ms', 'median_tokens_per_second'] as const;

/** A line each row, without their total; a column each currency there is. */
export function csvResponse(rows: readonly Row[], groups: readonly Group[], name: string): Response {
  const currencies = [...new Set(rows.flatMap((row) => Object.keys(row.cost)))].sort();
  const money = ['cost', 'estimated_cost'] as const;
  const header = [
    ...groups,
    ...COUNTS,
    ...MEDIANS,
    ...money.flatMap((field) => currencies.map((currency) => `${field}_${currency}`)),
  ];
  const lines = rows.map((row) => [
    ...groups.map((group) => row[group] ?? ''),
    ...COUNTS.map((count) => String(row[count])),
    ...MEDIANS.map((median) => String(row[median] ?? '')),
    ...money.flatMap((field) => currencies.map((currency) => decimalText(row[field][currency]))),
  ]);
  return linesResponse([header, ...lines], name);
}

/** @param lines the first has the columns' names */
export function linesResponse(lines: readonly (readonly string[])[], name: string): Response {
  return new Response(lines.map(csvLine).join(''), {
    headers: {
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': `attachment; filename="${name}.csv"`,
    },
  });
}
