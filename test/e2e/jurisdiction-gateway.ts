/** Gateways with a `JURISDICTION` that log each object that they make (W6). */
import { expect } from 'vitest';
import { decodeObject, type JsonObject, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { jsonOf } from './client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway, type Vars } from './gateway.ts';

export const ADMIN = { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } };
export const MODEL = 'openai/gpt-4o-mini';
export const ERASURES = '*erasures';
export const TODAY = new Date().toISOString().slice(0, 10);
export const EU: Vars = { JURISDICTION: 'eu', LOCATION_HINT: 'weur' };

export const start = (vars: Vars) =>
  startGateway({
    entrypoint: 'jurisdiction-worker.ts',
    vars: { AUTH: 'keys', LEDGER: 'object', RESPONSES: 'durable', ...vars },
    bindings: {
      EU_LEDGER: { type: 'durable-object', worker: 'weir', exportName: 'EuLedger' },
      EU_RESPONSES: { type: 'durable-object', worker: 'weir', exportName: 'EuResponse' },
    },
  });

/** The objects that have been made, each as `<kind> <name>`. */
export function objectsIn(gateway: Gateway, place: 'object_in_eu' | 'object_outside'): string[] {
  const lines = gateway.logs().map((line) => decodeObject(line));
  return lines.flatMap((line) => (line?.event === place ? `${line.kind} ${line.name}` : []));
}

export interface Key {
  readonly id: string;
  readonly headers: Readonly<Record<string, string>>;
}

export async function makeKey(gateway: Gateway, fields: JsonObject = {}): Promise<Key> {
  const made = await jsonOf(await gateway.post('/admin/keys', { name: 'k', ...fields }, ADMIN));
  expect(made).toHaveProperty('key');
  return { id: textOf(made.id), headers: { authorization: `Bearer ${textOf(made.key)}` } };
}

export const LIMITS = {
  rpm: 1000,
  budget: { tokens: 1_000_000, per: 'day', mode: 'hard' },
  per_user: { rpm: 500, budget: { tokens: 100_000, per: 'day' } },
};

export async function recordsOf(gateway: Gateway, key: Key): Promise<readonly JsonObject[]> {
  return objectsOf(
    (await jsonOf(await gateway.fetch(`/v1/usage/records?from=${TODAY}&key=${key.id}`, ADMIN))).data,
  );
}

export async function textFrom(gateway: Gateway, path: string, init: RequestInit = {}): Promise<string> {
  const response = await gateway.fetch(path, { ...ADMIN, ...init });
  const text = await response.text();
  expect([response.status, text]).toEqual([expect.toSatisfy((status) => status < 300), expect.anything()]);
  return text;
}
