/**
 * Tests that the time to translate a body grows with its size only (B4). Each body once took its writer 2 to 90 s. The test measures
 * the CPU time of this thread.
 */
import { describe, expect, test } from 'vitest';
import { COSTLY, type CostlyBody } from '../hostile/attacks/requests.ts';
import type { Sample } from '../hostile/scaling/samples.ts';
import { read, targetsFor, write } from '../hostile/scaling/writers.ts';
import { slowness } from '../machine-speed.ts';

/** Ten times the time of the slowest body. */
const MAX_RAN_MS = 1500 * slowness();
const PROFILES: Readonly<Record<CostlyBody['provider'], string>> = {
  openai: 'like-openai/',
  anthropic: 'like-anthropic/',
  gemini: 'like-gemini-native/',
};

const TRANSLATED = Object.entries(COSTLY).flatMap(([name, { protocol, provider, body }]) =>
  protocol === 'embeddings' ? [] : [[name, { protocol, provider, body }] as const],
);

describe('B4 a request with', () => {
  test.each(TRANSLATED)('%s: read and written in time, not many times its size', async (name, costly) => {
    const { protocol, provider, body } = costly;
    const sample: Sample = { name, protocol, route: 'chat', body: {} };
    const targets = targetsFor('chat').filter(({ address }) => address.startsWith(PROFILES[provider]));
    const known = read(JSON.stringify({ model: 'm', ...body() }), sample);
    if (!('request' in known)) throw new Error(known.why);
    expect(targets).toHaveLength(1);
    for (const target of targets) {
      const { ranMs, did, outcome, cameBytes, leftBytes, heldChars, names } = await write(known, target);
      expect(Math.max(ranMs, known.watch.longestMs), did).toBeLessThan(MAX_RAN_MS);
      expect(outcome).toBe('sent');
      expect(leftBytes).toBeLessThan(4 * cameBytes + 128 * 1024);
      expect(names).toBeLessThanOrEqual(100);
      expect(heldChars).toBeLessThan(128 * 1024);
    }
  });
});
