/**
 * Streams that recordings of Gemini begin, cut anywhere: a client of Gemini's API gets an error at the end, and no
 * finish, in each form (E2, I9).
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { SEED, sampleOf } from '../random-run.ts';
import { RoutedGateway } from './upstreams.ts';

const FOLDER = fileURLToPath(new URL('../../../shared/requests/gemini/', import.meta.url).href);
const note = existsSync(FOLDER) ? '' : ' (skipped: ../shared/requests is not here)';
const ALIASES = JSON.stringify({ translated: { model: 'gemini/m', set: { seed: 1 } } });
const ENV = { GEMINI_API_KEY: 'key-of-gemini', GEMINI_BASE_URL: 'https://gemini', ALIASES };
const CONTENTS = [{ role: 'user', parts: [{ text: 'Hello' }] }];
/** In each recording and form. */
const CUTS = sampleOf(1, 8);

const STREAMS = note ? [] : readdirSync(FOLDER).filter((name) => name.endsWith('.sse'));

test.skipIf(note !== '')(`there are streams${note}`, () => expect(STREAMS.length).toBeGreaterThan(5));

/** Elements of a stream that has ended, also with an error. An array is complete JSON. */
function elementsOf(text: string, isArray: boolean): JsonObject[] {
  if (isArray) return objectsOf(JSON.parse(text));
  return text
    .split('\r\n\r\n')
    .filter((one) => one.startsWith('data: '))
    .map((one) => decodeObject(one.slice('data: '.length)) ?? {});
}

function textIn(elements: readonly JsonObject[]): string {
  const parts = elements.flatMap(({ candidates }) =>
    objectsOf(candidates).flatMap(({ content }) => objectsOf(objectOf(content).parts)),
  );
  return parts.map(({ text, thought }) => (thought === true ? '' : textOf(text))).join('');
}

describe.each(STREAMS)('%s', (name) => {
  const whole = readFileSync(FOLDER + name, 'utf8')
    .replace(/\r?\n/g, '\r\n')
    .trimEnd();
  const answer = Buffer.from(`${whole}\r\n\r\n`);
  /** Up to here no event has a finish. */
  const open = Buffer.byteLength(whole.slice(0, whole.lastIndexOf('data: '))) + 'data: '.length;
  const complete = textIn(elementsOf(`${whole}\r\n\r\n`, false));

  test.each(['gemini/m', 'translated'])('E2 I9 %s', async (model) => {
    for (let cut = 0; cut < CUTS; cut++) {
      const at = 1 + ((SEED * 7919 + cut * 104_729 + name.length * 31) % (open - 1));
      for (const query of ['?alt=sse', '']) {
        const pieces = [answer.subarray(0, at)];
        const ending = cut % 2 === 0 ? 'cut' : 'end';
        const behavior = { kind: 'answer', type: 'text/event-stream', pieces, ending } as const;
        const gateway = new RoutedGateway({ '': [behavior] }, ENV);
        const path = `/v1beta/models/${model}:streamGenerateContent${query}`;
        const response = await gateway.gateway.post(path, 'x', { contents: CONTENTS });
        const text = await response.text();
        const where = `SEED=${SEED}, ${at} bytes, ${query}: ${text.slice(-300)}`;
        expect(text, where).not.toContain('finishReason');
        const elements =
          response.status === 200 ? elementsOf(text, query === '') : [decodeObject(text) ?? {}];
        expect(elements.at(-1), where).toMatchObject({ error: { code: 502, status: 'UNAVAILABLE' } });
        expect(complete.startsWith(textIn(elements)), where).toBe(true);
        expect(gateway.records, where).toMatchObject([
          { client: 'gemini', error_code: 'upstream_truncated' },
        ]);
      }
    }
  });
});
