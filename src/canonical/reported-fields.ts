/** Names of what a request lost on its way, for its answer, its record and the log: callers choose them, and how many there are. */
import { MAX_REPORTED_NAME_CHARS, MAX_REPORTED_NAMES } from '../shared/limits.ts';

/** Each once, in their order; those beyond {@link MAX_REPORTED_NAMES} are not kept. */
export class ReportedFields {
  readonly #names = new Set<string>();

  add(name: string): void {
    if (this.#names.size < MAX_REPORTED_NAMES) this.#names.add(reportedField(name));
  }

  /** What others have counted. */
  addAll(names: readonly string[]): void {
    for (const name of names) this.add(name);
  }

  get list(): readonly string[] {
    return [...this.#names];
  }
}

export function reportedField(name: string): string {
  return name.slice(0, MAX_REPORTED_NAME_CHARS);
}
