/** Tests that each fault behaves as its name says, and that the simulator detects clients that disconnect early. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIMITS } from './fault-steps.ts';
import { FAULT_NAMES, faultyReply } from './faults.ts';
import { decodeObject } from './json.ts';
import { REFUSAL_FORMS } from './refusals.ts';
import { STREAM_HEAD } from './reply.ts';
import { allScenes } from './scenes.ts';
import { createSimulator, type Simulator } from './server.ts';
import {
  chatBody,
  finishesOf,
  paths,
  type Received,
  readStream,
  sendRequest,
  textIn,
} from './test-requests.ts';

let simulator: Simulator;
beforeAll(async () => {
  simulator = await createSimulator();
});
afterAll(() => simulator.close());

const WHOLE = 'Water over the crest, “unhurried”, and every drop of it counted — naïvely.';

function faulty(fault: string, signal = AbortSignal.timeout(120_000)): Promise<Response> {
  const body = chatBody(`gpt-4o-mini:${fault}`, { stream: true });
  return sendRequest(simulator, { path: paths.openai, body, signal });
}

async function receivedOf(fault: string): Promise<Received> {
  return readStream(await (await faulty(fault)).text());
}

/** Reads until the text has arrived, and leaves the rest unread. */
async function readUntil(response: Response, wanted: string): Promise<void> {
  const decoder = new TextDecoder();
  let text = '';
  const reader = response.body?.getReader();
  while (reader && !text.includes(wanted)) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`The body ended before ${wanted}`);
    text += decoder.decode(value, { stream: true });
  }
}

describe('faults that end the stream', () => {
  test.each(['cut', 'reset', 'stall-mid'])('%s: half of the text arrives, and no finish', async (fault) => {
    const client = new AbortController();
    const response = await faulty(fault, client.signal);
    await readUntil(response, ' and"');
    const request = await simulator.request(simulator.requests.length - 1);
    if (fault === 'stall-mid') client.abort();
    const endings = { cut: 'finished', reset: 'aborted', 'stall-mid': 'disconnected' };
    expect(await request.closed).toBe(endings[fault as keyof typeof endings]);
  });

  test('cut closes the body cleanly, reset does not', async () => {
    expect(await receivedOf('cut')).toMatchObject({ dones: 0 });
    await expect(receivedOf('reset')).rejects.toThrow();
  });

  test.each(['hang', 'stall-head'])('%s: nothing arrives until the client disconnects', async (fault) => {
    const client = new AbortController();
    const place = simulator.requests.length;
    const response = faulty(fault, client.signal);
    const request = await simulator.request(place);
    if (fault === 'stall-head') expect((await response).status).toBe(200);
    const rejected = expect(response.then((answer) => answer.text())).rejects.toThrow();
    client.abort();
    await rejected;
    expect([await request.closed, request.bytesSent]).toEqual(['disconnected', 0]);
  });
});

describe('faults inside the stream', () => {
  const texts: readonly [string, RegExp][] = [
    ['junk', /data: <p>/],
    ['half-json', /"del\n\n/],
    ['error-event', /event: error\ndata: \{"error":\{"message":"The server had an error"/],
    ['error-data', /\n\ndata: \{"error":\{"message"/],
    ['error-string', /\n\ndata: \{"error":"The server had an error"\}/],
    ['error-choices', /"content":" every"\}.*,"error":\{"message".*\}\}\n\n/],
    ['error-first', /^data: \{"error":\{"message"/],
  ];
  test.each(texts)('%s', async (fault, pattern) => {
    const received = await receivedOf(fault);
    expect(received.text).toMatch(pattern);
    expect(received.text.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  test.each([
    ['no-done', WHOLE, ['stop'], 0],
    ['no-finish', WHOLE, [], 1],
    ['after-finish', `${WHOLE}Water`, ['stop', 'stop'], 1],
    ['double-done', `${WHOLE}Water`, ['stop'], 2],
    ['drip', WHOLE, ['stop'], 1],
    ['text-plain', WHOLE, ['stop'], 1],
    ['queue', WHOLE, ['stop'], 1],
    ['gzip', WHOLE, ['stop'], 1],
  ])('%s', async (fault, text, finishes, dones) => {
    const received = await receivedOf(fault);
    expect([textIn(received), finishesOf(received), received.dones]).toEqual([text, finishes, dones]);
    expect(received.comments).toHaveLength(fault === 'queue' ? LIMITS.queueComments : 0);
  });

  test.each([
    ['big-event', LIMITS.bigEventBytes],
    ['endless-line', LIMITS.endlessBytes],
    ['endless-event', LIMITS.endlessBytes],
    ['flood', LIMITS.floodBytes],
  ])('%s sends up to its limit and ends', async (fault, bytes) => {
    const response = await faulty(fault);
    let size = 0;
    for await (const part of response.body ?? []) size += part.length;
    expect(size).toBeGreaterThan(bytes);
    expect(size).toBeLessThan(bytes * 1.1);
  });

  test('flood waits for a slow reader, and stops when it disconnects', async () => {
    const client = new AbortController();
    const place = simulator.requests.length;
    await readUntil(await faulty('flood', client.signal), ' and"');
    const request = await simulator.request(place);
    client.abort();
    expect(await request.closed).toBe('disconnected');
    expect(request.bytesSent).toBeLessThan(LIMITS.floodBytes);
  });
});

describe('faults instead of a stream', () => {
  test('json, html, empty and redirect', async () => {
    expect(await (await faulty('json')).json()).toMatchObject({ object: 'chat.completion' });
    expect((await faulty('html')).headers.get('content-type')).toBe('text/html');
    expect(await (await faulty('empty')).text()).toBe('');
    const redirect = await faulty('redirect');
    expect([redirect.status, redirect.headers.get('location')]).toEqual([307, `${simulator.url}/elsewhere`]);
  });

  test.each(allScenes.map((scene) => [scene.id, scene] as const))(
    '%s: status-429 has the provider’s own form',
    (_, scene) => {
      // Gemini's is a list of one.
      const body = scene.refusal(429, 'Slow down').body.replace(/^\[(.*)\]$/, '$1');
      expect(decodeObject(body)).toBeDefined();
    },
  );

  test.each(REFUSAL_FORMS)('status-503-%s', async (form) => {
    const response = await faulty(`status-503-${form}`);
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '7']);
    expect((await response.text()).includes('Simulated failure')).toBe(form !== 'none');
  });

  test('an unknown fault is part of the model name; header and option name faults too', async () => {
    expect((await faulty('nonsense')).status).toBe(404);
    const body = chatBody('gpt-4o-mini');
    const byHeader = await sendRequest(simulator, {
      path: paths.openai,
      body,
      headers: { 'x-simulator-fault': 'status-402' },
    });
    expect(byHeader.status).toBe(402);
    await using other = await createSimulator({ fault: 'status-418' });
    expect((await sendRequest(other, { path: paths.openai, body })).status).toBe(418);
  });

  test('every scene supports every fault', () => {
    for (const scene of allScenes) {
      const [path = '', operation = 'chat'] = Object.entries(scene.routes)[0] ?? [];
      const call = {
        path,
        operation,
        model: scene.models[0] ?? '',
        headers: {},
        body: chatBody('x'),
        serial: 1,
      };
      const events = [...scene.stream(call)];
      const good = { scene, head: STREAM_HEAD, streamed: true, events, object: '', elsewhere: '' };
      for (const fault of FAULT_NAMES) expect(faultyReply(fault, good)).toBeDefined();
    }
  });

  test.each([
    ['cut', /^\s*\{"id":(?!.*usage)/],
    ['queue', /^\n{41}\{.*\}$/],
    ['double-done', /^\n\{.*\}$/],
    ['error-event', /^\{"error":\{"message":"Insufficient resources"/],
    ['error-string', /^\{"error":"Insufficient resources"\}$/],
    ['error-choices', /"choices":.*,"error":\{"message"/],
    ['big-event', / {9}\n\{/],
  ])('%s applies to a non-streaming response too', async (fault, pattern) => {
    const response = await sendRequest(simulator, {
      path: paths.deepseek,
      body: chatBody(`deepseek-chat:${fault}`),
    });
    expect((await response.text()).replaceAll('": ', '":')).toMatch(pattern);
  });
});
