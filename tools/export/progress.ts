/** Shows the progress of a long run: one updated line in a terminal, several lines in a file. */

const WIDTH = 30;
const LINES_IN_A_FILE = 20;

export interface ProgressOutput {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

export class Progress {
  readonly #output: ProgressOutput;
  readonly #startedAt = Date.now();
  #first: number | null = null;
  #linesWritten = 0;

  constructor(output: ProgressOutput) {
    this.#output = output;
  }

  /** @param total null if unknown */
  show(done: number, total: number | null): void {
    this.#first ??= done;
    const seconds = Math.max(1, (Date.now() - this.#startedAt) / 1000);
    const speed = `${Math.round((done - this.#first) / seconds)} a second`;
    if (total === null) return this.#line(`${done} records, ${speed}`, true);
    // New records may have arrived since the total was read.
    const share = total === 0 ? 1 : Math.min(1, done / total);
    const bar = '#'.repeat(Math.round(share * WIDTH)).padEnd(WIDTH, '.');
    const isDue = share * LINES_IN_A_FILE >= this.#linesWritten;
    this.#line(`[${bar}] ${Math.floor(share * 100)}% ${done} of ${total} records, ${speed}`, isDue);
  }

  end(message: string): void {
    this.#output.write(`${this.#output.isTTY === true ? '\n' : ''}${message}\n`);
  }

  #line(text: string, isDue: boolean): void {
    if (this.#output.isTTY === true) {
      this.#output.write(`\r${text}\x1b[K`);
    } else if (isDue) {
      this.#linesWritten++;
      this.#output.write(`${text}\n`);
    }
  }
}
