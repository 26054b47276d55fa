/** Writes CSV (RFC 4180) without cells that a spreadsheet reads as a formula. */

type Cell = string | number | null | undefined;

export function csvOf(lines: readonly (readonly Cell[])[]): string {
  return lines.map((cells) => `${cells.map(writeCell).join()}\r\n`).join('');
}

/** Text that begins like a formula gets an apostrophe, which spreadsheets read as "this is text". */
function writeCell(cell: Cell): string {
  if (typeof cell !== 'string') return String(cell ?? '');
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
