/** Unexpected exceptions while a non-streaming response is read: the client gets an error, and there is one record. */
import { describe, expect, test } from 'vitest';
import { createGateway } from '../../src/gateway.ts';
import type { Ports } from '../../src/http/context.ts';
import { decodeRecord } from '../../src/metering/record.ts';
import { MemoryStore } from '../metering/records.ts';
import { deploymentOf } from '../settings/read-settings.ts';

/** An upstream response that throws when a property is read. No response of a runtime does. */
function broken(property: string): Response {
  return new Proxy(new Response('{}'), {
    get(response, name) {
      if (name === property) throw new Error('the inside of it');
      const value: unknown = Reflect.get(response, name);
      return typeof value === 'function' ? value.bind(response) : value;
    },
  });
}

describe('B5 M1 a response that throws', () => {
  test.each(['headers', 'body'])(
    'E4 at its %s: an error without what was thrown, one record, and the upstream is cancelled',
    async (property) => {
      const deployment = deploymentOf({ AUTH: 'open', OPENAI_API_KEY: 'k' });
      const store = new MemoryStore();
      const work: Promise<unknown>[] = [];
      const logged: Readonly<Record<string, unknown>>[] = [];
      let signal: AbortSignal | null | undefined;
      const gateway = createGateway(deployment, {
        // With AUTH=open no key is read.
        store: store.asStore as unknown as Ports['store'],
        limiter: null,
        fetch: async (_, init) => {
          signal = init?.signal;
          return broken(property);
        },
        clock: { now: () => Date.now(), startTimer: () => () => {} },
        random: () => crypto.randomUUID(),
        tracing: null,
        log: (entry) => logged.push(entry),
      });
      const body = JSON.stringify({
        model: 'openai/gpt-4o-mini',
        messages: [{ role: 'user', content: 'Hello' }],
      });
      const request = new Request('https://weir.example/v1/chat/completions', { method: 'POST', body });
      const response = await gateway.fetch(request, { waitUntil: (promise) => work.push(promise) });
      await Promise.all(work);
      const text = await response.text();
      expect(response.status).toBeGreaterThanOrEqual(500);
      expect(text).not.toContain('the inside of it');
      expect(signal?.aborted).toBe(true);
      const records = [...store.entries.values()].map(({ metadata }) => decodeRecord(metadata)?.status);
      expect(records).toEqual(['failed']);
      expect(JSON.stringify(logged)).toContain('the inside of it');
    },
  );
});
