/** Reads `ALIASES`: names for one model, or for several models that are tried in order (R2). */

import type { ChatApi } from '../canonical/conversation.ts';
import type { RefusalKind } from '../canonical/refusal.ts';
import { isObject, type JsonObject, readArray, readText } from '../shared/json.ts';
import { MAX_TARGETS } from '../shared/limits.ts';
import { didYouMean } from '../shared/nearest.ts';
import { type BareNameSettings, providerOfBareName } from './bare-models.ts';
import { type ConfiguredProvider, servedBy } from './configured-provider.ts';
import { type SettingsReader, shownName } from './reader.ts';

/** The refusals that a step may name in `on`, to move on to the next step. */
const REFUSALS = ['context_length', 'content_filter'] as const satisfies readonly RefusalKind[];

/** One model of an alias. */
export interface AliasTarget {
  /** `<provider>/<model>`. For an alias that is a glob, the model may contain one `*`: {@link resolveStar}. */
  readonly address: string;
  /** Its share of the requests that try it first. Default: 0. */
  readonly weight: number;
  /** Time until its first output, in ms; null: only the limits of the request. */
  readonly timeoutMs: number | null;
  /** Fields that replace those of the request body. */
  readonly set: JsonObject;
  /** Refusals that move on to the next target, as failures do. */
  readonly on: readonly RefusalKind[];
  /** The API for chat requests; null: the provider's table decides. */
  readonly api: ChatApi | null;
}

export interface Alias {
  /** A name, or a glob over names. */
  readonly name: string;
  readonly steps: readonly AliasTarget[];
}

/** One object, so that targets without own fields are recognized as the same. */
const NO_FIELDS: JsonObject = {};

/** The target of an address that is used without an alias. */
export function targetWithoutAlias(address: string): AliasTarget {
  return { address, weight: 0, timeoutMs: null, set: NO_FIELDS, on: [], api: null };
}

/** The provider's id in `<provider>/<model>`, or `""` without a slash. */
export function providerOf(address: string): string {
  return address.slice(0, Math.max(0, address.indexOf('/')));
}

/**
 * The address of a step for a requested name. The model `*` of `<provider>/*` stands for the whole name, a `*` elsewhere for what the one
 * `*` of the alias matched.
 */
export function resolveStar(address: string, alias: string, name: string): string {
  const [before, after] = address.split('*');
  if (before === undefined || after === undefined) return address;
  const [prefix = '', suffix = ''] = isWholeName(address) ? [] : alias.split('*');
  return before + name.slice(prefix.length, name.length - suffix.length) + after;
}

/** Whether the model of an address is `*` alone. */
function isWholeName(address: string): boolean {
  return address === `${providerOf(address)}/*`;
}

/** Reads `ALIASES`. Invalid entries are reported to the reader and left out. */
export function readAliases(reader: SettingsReader, settings: AliasSettings): readonly Alias[] {
  const aliases: Alias[] = [];
  const entries = Object.entries(reader.object('ALIASES'));
  const names = entries.map(([name]) => name);
  for (const [name, value] of entries) {
    const steps = new StepReader(reader, name, { names, ...settings }).read(value);
    if (steps !== null) aliases.push({ name, steps });
  }
  return aliases;
}

const PRINTED_NAME = /^[\w.*:/@-]{1,64}$/;
const STEP_FIELDS = ['model', 'weight', 'timeout_seconds', 'set', 'on', 'api'];
/** `set` must not change where a request goes, or whether it is a stream. */
const FIXED_FIELDS = ['model', 'models', 'route', 'agent_id', 'stream'];
const MAX_STEP_SECONDS = 86_400;

interface AliasSettings extends BareNameSettings {
  readonly providers: ReadonlyMap<string, ConfiguredProvider>;
}

interface StepContext extends AliasSettings {
  /** The names of all aliases. */
  readonly names: readonly string[];
}

/** Reads the steps of one alias. Messages name the alias and the step, and contain no value, which may be a secret. */
class StepReader {
  readonly #reader: SettingsReader;
  readonly #name: string;
  /** The name for messages. */
  readonly #alias: string;
  readonly #context: StepContext;
  #position = '';

  constructor(reader: SettingsReader, alias: string, context: StepContext) {
    this.#reader = reader;
    this.#name = alias;
    this.#alias = PRINTED_NAME.test(alias) ? alias : 'an alias';
    this.#context = context;
  }

  /** @returns null if a step is invalid */
  read(value: unknown): readonly AliasTarget[] | null {
    const entries = Array.isArray(value) ? value : [value];
    if (entries.length === 0 || entries.length > MAX_TARGETS) {
      return this.#invalid(`must have 1 to ${MAX_TARGETS} steps`);
    }
    const steps: AliasTarget[] = [];
    for (const [i, entry] of entries.entries()) {
      this.#position = Array.isArray(value) ? ` step ${i + 1}` : '';
      const step = isObject(entry) ? this.#readStep(entry) : this.#readStep({ model: entry });
      if (step === null) return null;
      steps.push(step);
    }
    return steps;
  }

  #readStep(entry: JsonObject): AliasTarget | null {
    const { weight = 0, timeout_seconds, set = NO_FIELDS, on = [] } = entry;
    const model = readText(entry.model);
    const unknown = Object.keys(entry).find((field) => !STEP_FIELDS.includes(field));
    if (unknown !== undefined) {
      const hint = didYouMean(unknown, STEP_FIELDS);
      return this.#invalid(`accepts only ${STEP_FIELDS.join(', ')}, not ${shownName(unknown)}${hint}`);
    }
    if (model === undefined)
      return this.#invalid('must name a model, such as "mistral/mistral-small-latest"');
    const address = this.#addressOf(model);
    if (address === null) return null;
    if (!isNumberWithin(weight, 0, Number.MAX_SAFE_INTEGER)) {
      return this.#invalid('weight must be a number, at least 0');
    }
    const isTimed = timeout_seconds !== undefined;
    if (isTimed && (timeout_seconds === 0 || !isNumberWithin(timeout_seconds, 0, MAX_STEP_SECONDS))) {
      return this.#invalid(`timeout_seconds must be greater than 0, and at most ${MAX_STEP_SECONDS}`);
    }
    if (!isObject(set) || FIXED_FIELDS.some((field) => Object.hasOwn(set, field))) {
      return this.#invalid(
        `set must be an object with fields of the body, but not ${FIXED_FIELDS.join(', ')}`,
      );
    }
    const kinds = readArray(on).flatMap((kind) => REFUSALS.find((known) => known === kind) ?? []);
    if (!Array.isArray(on) || kinds.length < on.length) {
      return this.#invalid(`on must be a list of: ${REFUSALS.join(', ')}`);
    }
    const api = this.#readApi(entry.api, address);
    if (api === undefined) return null;
    return {
      address,
      weight,
      timeoutMs: isTimed ? Number(timeout_seconds) * 1000 : null,
      set,
      on: kinds,
      api,
    };
  }

  /** @returns undefined if it is invalid */
  #readApi(value: unknown, address: string): ChatApi | null | undefined {
    if (value === undefined) return null;
    const id = providerOf(address);
    const configured = this.#context.providers.get(id);
    const serving = configured && servedBy(configured, address.slice(id.length + 1));
    const hasResponses = serving?.provider.responses !== undefined;
    if (value === 'chat' || (value === 'responses' && hasResponses)) return value;
    const problem =
      value === 'responses' ? `${id} has no Responses API here` : 'api must be chat or responses';
    return this.#invalid(problem) ?? undefined;
  }

  #addressOf(model: string): string | null {
    const { names, providers } = this.#context;
    const id = model.includes('/') ? null : providerOfBareName(model, this.#context);
    if (id !== null && names.includes(model)) return this.#invalid('must name a model, not another alias');
    const address = id === null ? model : `${id}/${model}`;
    const provider = providerOf(address);
    if (providers.has(provider) && address.length > provider.length + 1) return this.#withStar(address);
    const ids = [...providers.keys()];
    const providerList = ids.join(', ') || 'none yet';
    const hint = didYouMean(provider, ids);
    return this.#invalid(
      `must be <provider>/<model> with a provider that is set up here: ${providerList}${hint}`,
    );
  }

  /** The address, whose `*` must stand for something: a model named `*` does not exist. An alias without `*` has one name to put there. */
  #withStar(address: string): string | null {
    const [inAddress, inName] = [address, this.#name].map((text) => text.split('*').length - 1);
    const isKnown = inAddress === 0 || isWholeName(address) || (inAddress === 1 && inName === 1);
    if (isKnown) return inName === 0 ? resolveStar(address, this.#name, this.#name) : address;
    return this.#invalid(
      'a * in a model must be the whole model (<provider>/*), which passes the requested name on, or stand for what the one * of the alias matches, and occur once',
    );
  }

  #invalid(message: string): null {
    this.#reader.invalid('ALIASES', `${this.#alias}${this.#position}: ${message}`);
    return null;
  }
}

function isNumberWithin(value: unknown, from: number, to: number): value is number {
  return typeof value === 'number' && value >= from && value <= to;
}
