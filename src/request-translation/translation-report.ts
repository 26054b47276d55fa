/** Collects what of a request was left out or changed, by name, so that the caller can be informed (Q5, Q8). */
import { type ApiError, apiError } from '../canonical/error.ts';
import { ReportedFields, reportedField } from '../canonical/reported-fields.ts';
import type { Unsupported } from './rules.ts';

export class TranslationReport {
  readonly #provider: string;
  readonly #mode: Unsupported;
  readonly #dropped = new ReportedFields();
  readonly #changed = new ReportedFields();
  #error: ApiError | null = null;

  /** @param provider its name in messages */
  constructor(provider: string, mode: Unsupported) {
    this.#provider = provider;
    this.#mode = mode;
  }

  get mode(): Unsupported {
    return this.#mode;
  }

  get dropped(): readonly string[] {
    return this.#dropped.list;
  }

  get changed(): readonly string[] {
    return this.#changed.list;
  }

  /** The first reason for which the request is not sent, or null. */
  get error(): ApiError | null {
    return this.#error;
  }

  /** A field about the request, which the provider refuses, was left out (Q5). */
  drop(field: string): void {
    const name = reportedField(field);
    if (this.#mode === 'refuse') this.fail(name, `${this.#provider} does not take ${name}: leave it out`);
    this.#dropped.add(name);
  }

  /** A field that would change the answer was left out, because the caller allows it (Q8). */
  dropAllowed(name: string): void {
    this.#dropped.add(name);
  }

  /** Something that would change the answer and that the provider has no form for: it is left out only where the caller allows it (Q6, Q8). */
  refuse(field: string): void {
    const name = reportedField(field);
    if (this.#mode === 'drop') return this.dropAllowed(name);
    this.fail(
      name,
      `${this.#provider} has nothing like ${name}: leave it out, or send the header x-weir-unsupported: drop`,
    );
  }

  change(name: string): void {
    this.#changed.add(name);
  }

  fail(param: string, message: string): void {
    this.#error ??= apiError('unsupported_parameter', message, param);
  }
}
