/**
 * Three thousand streams that are open at one moment: counted at the client, at the upstream and in the status, and
 * each with its record (M1).
 */
import { Agent, get, type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { decodeObject, objectOf } from '../../tools/simulator/json.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from './gateway.ts';
import { HeldUpstream, WORD } from './held-upstream.ts';

const STREAMS = 3000;
/** That are opened at once. */
const OPENING = 50;

const upstream = new HeldUpstream();
const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY, keepAlive: false });
let gateway: Gateway;

beforeAll(async () => {
  const url = await upstream.listen();
  gateway = await startGateway({
    vars: {
      OPENAI_BASE_URL: url,
      DEADLINE_SECONDS: '0',
      IDLE_TIMEOUT_SECONDS: '0',
      HEARTBEAT_SECONDS: '0',
    },
  });
});
afterAll(async () => {
  upstream.close();
  agent.destroy();
  await gateway[Symbol.asyncDispose]();
});

interface OpenStream {
  readonly status: number | undefined;
  readonly id: string;
  /** Resolves with the whole text. */
  readonly ended: Promise<string>;
}

/** Resolves when the first output has arrived. */
function open(): Promise<OpenStream> {
  const body = { model: 'openai/gpt-4o-mini', messages: [{ role: 'user', content: 'Hi' }], stream: true };
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', agent, headers: { 'content-type': 'application/json' } };
    const sent = request(`${gateway.url}/v1/chat/completions`, options, (response: IncomingMessage) => {
      let text = '';
      const ended = new Promise<string>((resolveEnd, rejectEnd) => {
        response.setEncoding('utf8');
        response.on('data', (part: string) => {
          text += part;
          if (text.includes(WORD)) resolve({ status: response.statusCode, id, ended });
        });
        response.on('end', () => resolveEnd(text));
        response.on('error', rejectEnd);
      });
      const id = String(response.headers['x-weir-request-id']);
    });
    sent.on('error', reject);
    sent.end(JSON.stringify(body));
  });
}

/** The requests in flight that the isolate counts. */
async function inFlight(): Promise<unknown> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const text = await new Promise<string>((resolve, reject) => {
    get(`${gateway.url}/admin/status?only=isolate`, { headers, agent }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        body += part;
      });
      response.on('end', () => resolve(body));
    }).on('error', reject);
  });
  return objectOf(decodeObject(text)?.in_flight).requests;
}

test('B1 M1 3,000 streams are open at one moment; each gets its end and has one record', async () => {
  const streams: OpenStream[] = [];
  for (let opened = 0; opened < STREAMS; opened += OPENING)
    streams.push(...(await Promise.all(Array.from({ length: OPENING }, open))));
  expect(streams.every(({ status }) => status === 200)).toBe(true);
  expect(upstream.open).toBe(STREAMS);
  expect(await inFlight()).toBe(STREAMS);
  const endings = Promise.all(streams.map(({ ended }) => ended));
  upstream.finish();
  const texts = await endings;
  expect(texts.filter((text) => text.endsWith('data: [DONE]\n\n'))).toHaveLength(STREAMS);
  const records = await gateway.records(STREAMS);
  expect(records.map(({ request_id }) => request_id).sort()).toEqual(streams.map(({ id }) => id).sort());
  expect(new Set(records.map(({ status, total_tokens }) => `${status} ${total_tokens}`))).toEqual(
    new Set(['finished 5']),
  );
  await expect.poll(inFlight).toBe(0);
  expect(upstream.open).toBe(0);
});
