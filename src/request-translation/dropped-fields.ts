/** Which fields of a request may be dropped without changing the output, and the report of what a translation dropped or changed. */
import type { CitableDocument } from '../canonical/citations.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { fieldOf } from '../facts/fields.ts';
import { hasItems, type JsonObject, ownValue } from '../shared/json.ts';
import { wordSet } from '../shared/words.ts';
import type { Unsupported } from './rules.ts';

interface ClientFields {
  /** The client's names of fields, by those of Chat Completions. */
  readonly fieldNames?: Readonly<Record<string, string>>;
  readonly optionalFields?: readonly string[];
}

/** Collects the names of dropped and changed fields of one request, and the first reason for which it is not sent. */
export class TranslationReport {
  readonly mode: Unsupported;
  /** The documents of the body, in its order; null: one that no citation in the answer can name. Undefined: all are. */
  documents: readonly (CitableDocument | null)[] | undefined;
  readonly #provider: string;
  readonly #dropped = new ReportedFields();
  readonly #changed = new ReportedFields();
  readonly #fieldNames: Readonly<Record<string, string>>;
  readonly #optional: readonly string[];
  #error: ApiError | null = null;

  /**
   * @param provider the provider's name, for messages
   * @param fields the client's own names, and the fields that are dropped where the request would be refused for them
   */
  constructor(provider: string, mode: Unsupported, fields: ClientFields = {}) {
    this.#provider = provider;
    this.mode = mode;
    this.#fieldNames = fields.fieldNames ?? {};
    this.#optional = fields.optionalFields ?? [];
  }

  get dropped(): readonly string[] {
    return this.#dropped.list;
  }

  /** Further names of dropped fields are not kept. */
  get hasMaxDropped(): boolean {
    return this.#dropped.isFull;
  }

  get changed(): readonly string[] {
    return this.#changed.list;
  }

  /** The first reason for which the request is not sent, or null. */
  get error(): ApiError | null {
    return this.#error;
  }

  /** The provider refuses a field that does not change the output: it is dropped. An error if the caller wants such fields refused. */
  drop(field: string): void {
    const name = this.#nameOf(reportedField(field));
    if (this.mode === 'refuse')
      this.fail(name, `${this.#provider} does not support ${name}: remove it from the request`);
    this.#dropped.add(name);
  }

  /** The provider does not support a field that changes the output: an error, unless the caller wants such fields dropped. */
  refuse(field: string): void {
    const name = reportedField(field);
    if (this.mode === 'drop') return this.dropAllowed(name);
    if (this.#optional.includes(name)) return this.drop(name);
    const own = this.#nameOf(name);
    this.fail(
      own,
      `${this.#provider} does not support ${own}: remove it from the request, or send the header x-weir-unsupported: drop`,
    );
  }

  #nameOf(field: string): string {
    return ownValue(this.#fieldNames, field) ?? field;
  }

  /** A field that changes the output was dropped, because the caller allows it. */
  dropAllowed(name: string): void {
    this.#dropped.add(this.#nameOf(name));
  }

  change(name: string): void {
    this.#changed.add(this.#nameOf(name));
  }

  fail(param: string, message: string): void {
    this.#error ??= apiError('unsupported_parameter', message, param);
  }
}

/** Whether the value has the same effect as no value. */
export function isDefault(field: string, value: unknown, body: JsonObject): boolean {
  return fieldOf(field).isDefault?.(value, body) ?? false;
}

/** Whether a default is empty, or beside an empty list of tools: `refusesEmpty` of a provider's table has the sources. */
export function isEmptySetting(field: string, value: unknown, body: JsonObject): boolean {
  const { saysNothing } = fieldOf(field);
  const isEmpty =
    saysNothing === 'as_default' ||
    (saysNothing === 'without_tools' && Array.isArray(body.tools) && !hasItems(body.tools));
  return isEmpty && isDefault(field, value, body);
}

/** Whether the field is about the request, such as who sent it, and not about the output. */
export function isAboutRequest(field: string): boolean {
  return fieldOf(field).optional === 'about_request';
}

/** Whether a refused field is dropped: it is about the request, or sets sampling, which clients send by default. */
export function isOptional(field: string): boolean {
  return fieldOf(field).optional !== undefined;
}

/** Whether dropping a key loses nothing, so that it is not reported: it has no value, or clients copy it from responses. */
export function losesNothing(key: string, value: unknown): boolean {
  return value === null || value === undefined || FROM_RESPONSES.has(key);
}

const FROM_RESPONSES: ReadonlySet<string> = wordSet(`
  refusal annotations parsed parsed_arguments audio provider_specific_fields index reasoning
  reasoning_content reasoning_details thinking_blocks extra_content function_call tool_calls
`);

/** Names of dropped or changed request fields in a response header, its record and its log. Clients choose the names. */
export const MAX_REPORTED_NAMES = 100;
const MAX_REPORTED_NAME_CHARS = 128;

/** Collects names of fields, each once and in order, up to {@link MAX_REPORTED_NAMES}. */
export class ReportedFields {
  readonly #names = new Set<string>();

  add(name: string): void {
    if (!this.isFull) this.#names.add(reportedField(name));
  }

  get isFull(): boolean {
    return this.#names.size >= MAX_REPORTED_NAMES;
  }

  addAll(names: readonly string[]): void {
    for (const name of names) this.add(name);
  }

  get list(): readonly string[] {
    return [...this.#names];
  }
}

/** Reports the keys of a message that are not sent. Keys that a response carried and a client repeats are not reported. */
export function reportUnreadKeys(
  message: JsonObject,
  read: readonly string[],
  report: TranslationReport,
): void {
  for (const key of Object.keys(message)) {
    // A message may have any number of keys.
    if (report.hasMaxDropped) return;
    if (!read.includes(key) && !losesNothing(key, message[key])) report.drop(`messages.${key}`);
  }
}

/** The name as it is reported: truncated. */
export function reportedField(name: string): string {
  return name.slice(0, MAX_REPORTED_NAME_CHARS);
}
