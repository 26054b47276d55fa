/** Keeps the latest records of many that come in no order, and no more of them than a page has. */
import type { RecordSummary } from '../record.ts';

export class Newest {
  readonly #limit: number;
  #records: RecordSummary[] = [];
  #isCut = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(record: RecordSummary): void {
    this.#records.push(record);
    if (this.#records.length >= 4 * this.#limit) this.#cut();
  }

  get isFull(): boolean {
    return this.#records.length >= this.#limit;
  }

  /** The latest first. */
  get records(): readonly RecordSummary[] {
    this.#cut();
    return this.#records;
  }

  /** There were more than it keeps. */
  get isCut(): boolean {
    return this.#isCut || this.#records.length > this.#limit;
  }

  #cut(): void {
    this.#records.sort((a, b) => (a.request_id > b.request_id ? -1 : 1));
    if (this.#records.length <= this.#limit) return;
    this.#isCut = true;
    this.#records = this.#records.slice(0, this.#limit);
  }
}
