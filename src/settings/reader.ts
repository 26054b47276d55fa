/** Reads one typed value at a time out of the Worker's variables and secrets, and keeps what is invalid. */
import { isObject, type JsonObject, parseJson, readText } from '../shared/json.ts';
import { jsonFault, kindOf } from '../shared/json-fault.ts';

/** An invalid setting, and what it should be. Never contains its value, which may be a secret. */
export interface SettingProblem {
  readonly setting: string;
  readonly message: string;
}

/** A day: a timer takes no more than 24, and no answer takes that long. */
const MAX_SECONDS = 86_400;

export class SettingsReader {
  readonly problems: SettingProblem[] = [];
  /** Every name that was read, set or not: the settings that there are. */
  readonly names = new Set<string>();
  readonly #env: JsonObject;

  constructor(env: JsonObject) {
    this.#env = env;
  }

  /** A variable's text; undefined where it is not set or empty. */
  text(name: string): string | undefined {
    const value = this.#valueOf(name);
    if (value === undefined || typeof value === 'string') return readText(value?.trim());
    this.invalid(name, 'must be text');
    return undefined;
  }

  /** One of a few words, the first of which is the default. */
  choice<Word extends string>(name: string, words: readonly [Word, ...Word[]]): Word {
    const text = this.text(name);
    if (text === undefined) return words[0];
    const word = words.find((known) => known === text);
    if (word === undefined) this.invalid(name, `must be one of: ${words.join(', ')}`);
    return word ?? words[0];
  }

  bytes(name: string, byDefault: number): number {
    const text = this.text(name);
    if (text === undefined) return byDefault;
    const bytes = Number(text);
    if (Number.isSafeInteger(bytes) && bytes > 0) return bytes;
    this.invalid(name, 'must be a whole number of bytes, greater than 0');
    return byDefault;
  }

  /** Seconds, with fractions, as ms; 0 turns the clock off. */
  seconds(name: string, byDefault: number): number {
    const seconds = Number(this.text(name) ?? byDefault);
    if (seconds >= 0 && seconds <= MAX_SECONDS) return seconds * 1000;
    this.invalid(name, `must be seconds from 0 (off) to ${MAX_SECONDS}`);
    return byDefault * 1000;
  }

  /** A JSON object: as text, or as wrangler hands on a table of its own file. */
  object(name: string): JsonObject {
    const value = this.#valueOf(name);
    if (value === undefined || value === '') return {};
    const object = typeof value === 'string' ? parseJson(value) : value;
    if (isObject(object)) return object;
    this.invalid(name, `must be a JSON object, and ${faultOf(value, object)}`);
    return {};
  }

  /** A JSON list, as `object` reads an object. */
  list(name: string): readonly unknown[] {
    const value = this.#valueOf(name);
    if (value === undefined || value === '') return [];
    const list = typeof value === 'string' ? parseJson(value) : value;
    if (Array.isArray(list)) return list;
    this.invalid(name, `must be a JSON list, and ${faultOf(value, list)}`);
    return [];
  }

  #valueOf(name: string): unknown {
    this.names.add(name);
    return this.#env[name];
  }

  url(name: string, value: string | undefined): string | undefined {
    if (value !== undefined && URL.canParse(value) && /^https?:\/\//.test(value))
      return value.replace(/\/+$/, '');
    this.invalid(name, 'must be an http(s) URL');
    return undefined;
  }

  invalid(setting: string, message: string): void {
    // Two providers may share a setting.
    if (this.problems.some((known) => known.setting === setting && known.message === message)) return;
    this.problems.push({ setting, message });
  }
}

/** @param value as the environment has it, a JSON text or a table; `parsed`: what it holds */
function faultOf(value: unknown, parsed: unknown): string {
  return typeof value === 'string' ? jsonFault(value, parsed) : `is ${kindOf(parsed)}`;
}
