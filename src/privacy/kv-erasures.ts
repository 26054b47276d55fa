/** Erasures in KV, for a deployment without ledger objects: a repeated `DELETE` takes the next steps, and so does the daily run. */
import type { Erasures, RequestContext } from '../http/context.ts';
import { type Erasure, isRefusing, putErasing, sameRunning } from '../http/erasure.ts';
import { isObject } from '../shared/json.ts';
import { stepErasure } from './steps.ts';

const PREFIX = 'erasure/';
/** Erasures of the last 30 days that are known. */
const MAX_ERASURES = 1000;

type Store = RequestContext['ports']['store'];

/** Erasures without an object that runs them. */
export const KV_ERASURES: Erasures = {
  start: async (context, erasure) => {
    const { store } = context.ports;
    const running = sameRunning(await listErasures(store), erasure);
    if (running === undefined) {
      await putErasure(store, erasure);
      await refuse(store);
      return erasure;
    }
    return (await step(context, running)) ?? running;
  },
  find: async ({ ports: { store } }, id) => decode(await store.get(PREFIX + id, 'json')),
};

/** Takes the steps of all erasures that are due. */
export async function stepAll(context: RequestContext): Promise<void> {
  for (const erasure of await listErasures(context.ports.store)) await step(context, erasure);
}

async function step(context: RequestContext, erasure: Erasure): Promise<Erasure | null> {
  const { store } = context.ports;
  const next = await stepErasure(context, erasure);
  if (next === erasure) return next;
  if (next === null) await store.delete(PREFIX + erasure.id);
  else await putErasure(store, next);
  if (next === null || isRefusing(next) !== isRefusing(erasure)) await refuse(store);
  return next;
}

async function putErasure(store: Store, erasure: Erasure): Promise<void> {
  await store.put(PREFIX + erasure.id, JSON.stringify(erasure));
}

async function refuse(store: Store): Promise<void> {
  await putErasing(store, await listErasures(store));
}

async function listErasures(store: Store): Promise<readonly Erasure[]> {
  const { keys } = await store.list({ prefix: PREFIX, limit: MAX_ERASURES });
  const values = await Promise.all(keys.map(({ name }) => store.get(name, 'json')));
  return values.flatMap((value) => decode(value) ?? []);
}

/** Only {@link putErasure} writes these values. */
function decode(value: unknown): Erasure | null {
  return isObject(value) ? (value as unknown as Erasure) : null; // decode
}
