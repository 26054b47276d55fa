/**
 * Where Durable Objects are. A jurisdiction is part of an object's identity: in another one, the same name is another,
 * empty object. So it is chosen before the first key, and KV remembers it.
 */
import type { KeyStore } from '../auth/keys.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { isObject } from '../shared/json.ts';
import type { SettingsReader } from './reader.ts';

// https://developers.cloudflare.com/durable-objects/reference/data-location (2026-11), @cloudflare/workers-types 5.20261026.
const JURISDICTIONS = ['eu', 'fedramp', 'fedramp-high', 'us'] as const;
const LOCATION_HINTS = [
  ...['wnam', 'enam', 'sam', 'weur', 'eeur', 'apac', 'apac-ne', 'apac-se', 'oc', 'afr', 'me'],
] as const;

/** Where new objects are created. */
export interface ObjectPlace {
  /** Objects run and store within it; null: anywhere. */
  readonly jurisdiction: (typeof JURISDICTIONS)[number] | null;
  /** About where an object is created, which stays there; null: near its first caller. */
  readonly locationHint: string | null;
}

/** Reads `JURISDICTION` and `LOCATION_HINT`. */
export function readPlace(reader: SettingsReader): ObjectPlace {
  return {
    jurisdiction: readWord(reader, 'JURISDICTION', JURISDICTIONS),
    locationHint: readWord(reader, 'LOCATION_HINT', LOCATION_HINTS),
  };
}

function readWord<Word extends string>(
  reader: SettingsReader,
  name: string,
  words: readonly Word[],
): Word | null {
  const text = reader.text(name);
  const word = words.find((known) => known === text) ?? null;
  if (text !== undefined && word === null) reader.invalid(name, `must be one of: ${words.join(', ')}`);
  return word;
}

/** The part of a Durable Object namespace that is used to place its objects. */
export interface PlaceableNamespace<Stub> {
  getByName(name: string, options?: { readonly locationHint?: string }): Stub;
  jurisdiction?(jurisdiction: string): PlaceableNamespace<Stub>;
}

/** The objects of a namespace within a jurisdiction; undefined: anywhere. */
export function inJurisdiction<Stub>(
  namespace: PlaceableNamespace<Stub>,
  jurisdiction: string | undefined,
): PlaceableNamespace<Stub> {
  if (jurisdiction === undefined) return namespace;
  if (namespace.jurisdiction === undefined) throw new Error('The namespace has no jurisdictions');
  return namespace.jurisdiction(jurisdiction);
}

/** `JURISDICTION` is not that of the objects. */
class WrongJurisdiction extends Error {}

/** The error of a call that {@link PlaceCheck} refused; null: another exception. */
export function placeError(reason: unknown): ApiError | null {
  return reason instanceof WrongJurisdiction
    ? apiError('misconfigured', reason.message, 'JURISDICTION')
    : null;
}

/** Checks that the jurisdiction is that of the deployment's objects: once in each isolate, with one read of KV. */
export class PlaceCheck {
  readonly #store: Pick<KeyStore, 'get' | 'put' | 'list'>;
  readonly #jurisdiction: string | null;
  #isVerified = false;

  constructor(store: Pick<KeyStore, 'get' | 'put' | 'list'>, { jurisdiction }: ObjectPlace) {
    this.#store = store;
    this.#jurisdiction = jurisdiction;
  }

  get isVerified(): boolean {
    return this.#isVerified;
  }

  /** @throws what {@link placeError} reads */
  async verify(): Promise<void> {
    if (this.#isVerified) return;
    const chosen = await this.#readChosen();
    if (chosen !== this.#jurisdiction) {
      const [is, was] = [this.#jurisdiction, chosen].map((name) => name ?? 'none');
      throw new WrongJurisdiction(
        `JURISDICTION is ${is}, and the objects of this deployment are in ${was}: set it back, because limits and records are there`,
      );
    }
    this.#isVerified = true;
  }

  /** The jurisdiction of the objects; null: none. The first check of a deployment without keys chooses it. */
  async #readChosen(): Promise<string | null> {
    const stored = await this.#store.get<unknown>(MARKER, 'json');
    if (stored !== null) {
      const chosen = isObject(stored) ? stored.jurisdiction : undefined;
      if (typeof chosen === 'string' || chosen === null) return chosen;
      throw new WrongJurisdiction(
        `${MARKER} in KV can't be read: it says where the objects of this deployment are`,
      );
    }
    if (this.#jurisdiction === null) return null;
    const { keys } = await this.#store.list({ prefix: FIRST_KEY, limit: 1 });
    if (keys.length > 0) return null;
    await this.#store.put(MARKER, JSON.stringify({ jurisdiction: this.#jurisdiction }));
    return this.#jurisdiction;
  }
}

const MARKER = 'config/place';
const FIRST_KEY = 'key/';

/**
 * The objects of a namespace where the settings place them. Until the jurisdiction is checked, calls wait for the check.
 * @param hintOf about where an object of that name is created, if `LOCATION_HINT` does not say so
 */
export function placeObjects<Stub extends object>(
  namespace: PlaceableNamespace<Stub>,
  { jurisdiction, locationHint }: ObjectPlace,
  check: PlaceCheck,
  hintOf: (name: string) => string | undefined = () => undefined,
): { getByName(name: string): Stub } {
  const open = (name: string) => {
    const hint = locationHint ?? hintOf(name);
    const options = hint === undefined ? {} : { locationHint: hint };
    return inJurisdiction(namespace, jurisdiction ?? undefined).getByName(name, options);
  };
  return { getByName: (name) => (check.isVerified ? open(name) : checkedStub(() => open(name), check)) };
}

/** A stub whose calls run after the check. */
function checkedStub<Stub extends object>(open: () => Stub, check: PlaceCheck): Stub {
  const call =
    (method: string | symbol) =>
    async (...args: unknown[]): Promise<unknown> => {
      await check.verify();
      const stub = open();
      const found: unknown = Reflect.get(stub, method);
      if (typeof found !== 'function') throw new Error(`The object has no ${String(method)}`);
      return Reflect.apply(found, stub, args);
    };
  return new Proxy(Object.create(null), { get: (_, method) => call(method) }) as Stub; // decode
}
