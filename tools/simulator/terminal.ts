/** Terminal output of the demo: parts of a response as they arrive, and tables. No colours if they are disabled. */
import { styleText } from 'node:util';

export type Part = 'prompt' | 'reasoning' | 'text' | 'refusal' | 'call' | 'result' | 'event' | 'error';

const STYLES: Readonly<Record<Part | 'title' | 'note' | 'good', Parameters<typeof styleText>[0]>> = {
  title: 'bold',
  note: 'dim',
  good: 'green',
  prompt: 'dim',
  reasoning: 'dim',
  text: 'reset',
  refusal: 'yellow',
  call: 'cyan',
  result: 'dim',
  event: 'magenta',
  error: 'red',
};

/** styleText checks the stream, NO_COLOR and FORCE_COLOR itself. */
export function styled(style: keyof typeof STYLES, text: string): string {
  return styleText(STYLES[style], text, { stream: process.stdout });
}

export function print(line = ''): void {
  process.stdout.write(`${line}\n`);
}

const INDENT = '  ';
const LABEL_WIDTH = 11;

/** Writes parts as they arrive; a new kind of part begins a new line with its label. */
export class Painter {
  #part: Part | undefined;

  paint(part: Part, text: string): void {
    if (text === '') return;
    if (part !== this.#part) this.#begin(part);
    const continued = `\n${INDENT}${' '.repeat(LABEL_WIDTH)}`;
    process.stdout.write(styled(part, text.replaceAll('\n', continued)));
  }

  /** Prints a separate part, even after one of the same kind. */
  whole(part: Part, text: string): void {
    this.#end();
    this.paint(part, text);
    this.#end();
  }

  note(text: string): void {
    this.#end();
    print(INDENT + ' '.repeat(LABEL_WIDTH) + styled('note', text));
  }

  #begin(part: Part): void {
    this.#end();
    this.#part = part;
    process.stdout.write(INDENT + styled('note', part.padEnd(LABEL_WIDTH)));
  }

  #end(): void {
    if (this.#part !== undefined) print();
    this.#part = undefined;
  }
}

/** Columns as wide as their widest cell; numbers are right-aligned. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string[] {
  const widths = head.map((title, at) =>
    Math.max(title.length, ...rows.map((row) => String(row[at] ?? '').length)),
  );
  const line = (row: readonly (string | number)[]) => {
    const cells = row.map((cell, at) => {
      const width = widths[at] ?? 0;
      return typeof cell === 'number' ? String(cell).padStart(width) : cell.padEnd(width);
    });
    return INDENT + cells.join('  ').trimEnd();
  };
  const numeric = rows[0]?.map((cell) => typeof cell === 'number') ?? [];
  const titles = head.map((title, at) => (numeric[at] ? title.padStart(widths[at] ?? 0) : title));
  return [styled('note', line(titles)), ...rows.map(line)];
}
