/** Reads typed values from the Worker's variables and secrets, and collects the invalid ones. */
import type { Secret } from '../canonical/secret.ts';
import { isObject, type JsonObject, parseJson, readText } from '../shared/json.ts';
import { jsonFault, kindOf } from '../shared/json-fault.ts';
import { trimEnd } from '../shared/trim.ts';
import {
  type AllPlain,
  type AnyRow,
  type FeatureName,
  type PlainSettings,
  SETTINGS,
  settingName,
  type TimerName,
  type WholeRange,
} from './table.ts';

/** An invalid setting and what it must be. Never contains the value, which may be a secret. */
export interface SettingProblem {
  readonly setting: string;
  readonly message: string;
}

/** A setting that is in force, without its value where that may be a secret. */
export interface SettingInForce {
  readonly setting: string;
  /**
   * Null: a secret, or a list or an object, which may contain one. Of a URL, the part without credentials and query; of
   * `ALERT_URL`, the host.
   */
  readonly value: string | null;
  readonly source: 'default' | 'environment' | 'option' | 'secrets_store';
}

/** A day. Timers accept at most 24 days, and no response takes a day. */
const MAX_SECONDS = 86_400;

/** A secret of Secrets Store, as its binding has it. https://developers.cloudflare.com/secrets-store/integrations/workers/ (2026-11-22) */
export interface SecretBinding {
  get(): Promise<string>;
}

/** The values of the secrets of Secrets Store that were read, by the names of their bindings. */
export type SecretValues = ReadonlyMap<string, string>;

/** Reads settings by name, collects the problems of invalid ones, and notes each name, so that unknown variables can be reported. */
export class SettingsReader {
  readonly problems: SettingProblem[] = [];
  /** Settings without effect, because another one takes precedence. */
  readonly overridden: SettingProblem[] = [];
  /** Every name that was read, whether it is set or not. */
  readonly names = new Set<string>();
  /** The bindings of secrets whose values are not known: they are not read yet, or could not be read. */
  readonly unread = new Map<string, SecretBinding>();
  /** The values that may be shown, by setting. */
  readonly #shown = new Map<string, string>();
  readonly #env: JsonObject;
  readonly #secrets: SecretValues;

  constructor(env: JsonObject, secrets: SecretValues = new Map()) {
    this.#env = env;
    this.#secrets = secrets;
  }

  /** The text of a variable without surrounding spaces; undefined if it is not set or empty. */
  text(name: string): string | undefined {
    const text = this.#text(name);
    if (text !== undefined) this.#shown.set(name, withoutCredentials(text));
    return text;
  }

  #text(name: string): string | undefined {
    const value = this.#valueOf(name);
    if (value === undefined || typeof value === 'string') return readText(value?.trim());
    this.invalid(name, 'must be text');
    return undefined;
  }

  /** A secret, which may be a binding of Secrets Store. Every setting accepts one that is not read. */
  secret(name: string): Secret {
    const value = this.#valueOf(name);
    if (!isSecretBinding(value)) return this.#text(name) ?? null;
    const text = readText(this.#secrets.get(name)?.trim());
    if (text !== undefined) return text;
    this.unread.set(name, value);
    return { unreadable: name };
  }

  /** Shows this part of a secret among the settings in force. */
  show(name: string, part: string): void {
    this.#shown.set(name, part);
  }

  /** A binding, which has no type at run time; undefined where none has this name. */
  binding(name: string): object | undefined {
    const value = this.#env[name];
    return typeof value === 'object' && value !== null ? value : undefined;
  }

  /** One of these words. The first is the default. */
  choice<Word extends string>(name: string, words: readonly [Word, ...Word[]]): Word {
    const text = this.#textOr(name, words[0]);
    const word = words.find((known) => known === text);
    if (word === undefined) this.invalid(name, `must be one of: ${words.join(', ')}`);
    return word ?? words[0];
  }

  /** A whole number within a range. */
  whole(name: string, { from, to, byDefault, unit }: WholeRange): number {
    const number = Number(this.text(name) ?? byDefault);
    if (Number.isSafeInteger(number) && number >= from && number <= to) return number;
    this.invalid(
      name,
      `must be a whole number ${unit === undefined ? '' : `of ${unit} `}from ${from} to ${to}`,
    );
    return byDefault;
  }

  bytes(name: string, byDefault: number): number {
    const bytes = Number(this.#textOr(name, byDefault));
    if (Number.isSafeInteger(bytes) && bytes > 0) return bytes;
    this.invalid(name, 'must be a whole number of bytes, greater than 0');
    return byDefault;
  }

  /** Seconds, with fractions, in ms. 0 turns the timer off. */
  seconds(option: TimerName): number {
    const name = settingName(option);
    const { byDefault } = SETTINGS[option];
    const seconds = Number(this.#textOr(name, byDefault));
    if (seconds >= 0 && seconds <= MAX_SECONDS) return seconds * 1000;
    this.invalid(name, `must be seconds from 0 (off) to ${MAX_SECONDS}`);
    return byDefault * 1000;
  }

  /** A setting of the table that is a word, a whole number or bytes. */
  plain<Name extends keyof AllPlain>(name: Name): AllPlain[Name] {
    return this.#plain(settingName(name), SETTINGS[name]) as AllPlain[Name]; // decode
  }

  /** All such settings of a feature; null: of the core. */
  plainOf<Feature extends FeatureName | null>(feature: Feature): PlainSettings<Feature> {
    const rows = Object.entries(SETTINGS).filter(([, row]) => row.feature === feature);
    const values = rows.flatMap(([name, row]) => {
      const value = this.#plain(settingName(name), row);
      return value === undefined ? [] : [[name, value]];
    });
    return Object.fromEntries(values) as PlainSettings<Feature>; // decode
  }

  #plain(name: string, row: AnyRow): string | number | undefined {
    switch (row.kind) {
      case 'word':
        return this.choice(name, row.words);
      case 'whole':
        return this.whole(name, row);
      case 'bytes':
        return this.bytes(name, row.byDefault);
      default:
        return undefined;
    }
  }

  /** A JSON object: as text, or as an object, which wrangler makes of a table in its configuration. */
  object(name: string): JsonObject {
    const value = this.#valueOf(name);
    if (value === undefined || value === '') return {};
    const object = typeof value === 'string' ? parseJson(value) : value;
    if (isObject(object)) return object;
    this.invalid(name, `must be a JSON object, and ${describeFault(value, object)}`);
    return {};
  }

  /** A JSON list: as text, or as an array. */
  list(name: string): readonly unknown[] {
    const value = this.#valueOf(name);
    if (value === undefined || value === '') return [];
    const list = typeof value === 'string' ? parseJson(value) : value;
    if (Array.isArray(list)) return list;
    this.invalid(name, `must be a JSON list, and ${describeFault(value, list)}`);
    return [];
  }

  /** The text of a variable, or its default. */
  #textOr(name: string, byDefault: string | number): string {
    const text = this.#text(name) ?? String(byDefault);
    this.#shown.set(name, text);
    return text;
  }

  /**
   * The settings that are set, and the defaults of those with a closed set of values.
   * @param variables the environment without the options
   */
  inForce(variables: JsonObject): readonly SettingInForce[] {
    return [...this.names].flatMap((setting) => {
      const value = this.#env[setting];
      const isSet = value !== undefined && value !== '';
      const shown = this.#shown.get(setting) ?? null;
      if (!isSet && shown === null) return [];
      const setBy = value === variables[setting] ? 'environment' : 'option';
      const source = !isSet ? 'default' : isSecretBinding(value) ? 'secrets_store' : setBy;
      return { setting, value: shown, source };
    });
  }

  #valueOf(name: string): unknown {
    this.names.add(name);
    return this.#env[name];
  }

  url(name: string, value: string | undefined): string | undefined {
    if (isHttpUrl(value)) return trimEnd(value, '/');
    this.invalid(name, 'must be an http(s) URL');
    return undefined;
  }

  invalid(setting: string, message: string): void {
    // Two providers may share a setting.
    if (this.problems.some((known) => known.setting === setting && known.message === message)) return;
    this.problems.push({ setting, message });
  }
}

/** Whether a text is a URL with `http:` or `https:`. */
export function isHttpUrl(text: string | undefined): text is string {
  return text !== undefined && URL.canParse(text) && /^https?:\/\//.test(text);
}

const FIELD_NAME = /^[A-Za-z][A-Za-z_]{0,31}$/;

/** The name of a field for a message. Another text may be a value in the wrong place, such as a secret. */
export function shownName(name: string): string {
  return FIELD_NAME.test(name) ? name : 'another field';
}

/** A URL without its user, password and query, where keys may be. */
export function withoutCredentials(text: string): string {
  if (!URL.canParse(text)) return text;
  const { origin, pathname, username, password, search, hash } = new URL(text);
  return username + password + search + hash === '' ? text : origin + pathname;
}

/** Whether the value is a secret of Secrets Store. */
export function isSecretBinding(value: unknown): value is SecretBinding {
  return isObject(value) && typeof value.get === 'function';
}

/** @param value the variable: JSON text or an object; `parsed`: its JSON value */
function describeFault(value: unknown, parsed: unknown): string {
  return typeof value === 'string' ? jsonFault(value, parsed) : `is ${kindOf(parsed)}`;
}
