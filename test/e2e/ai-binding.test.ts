/** The binding `AI` in workerd, whose class for it is the real one, before a scripted Cloudflare (W12). */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, textOf } from '../../tools/simulator/json.ts';
import { contentOf } from './client.ts';
import { type Runtime, startWorkers, type WorkerOptions } from './workers.ts';

interface Received {
  readonly url: string;
  readonly model: string;
  readonly inputs: JsonObject;
  readonly options: JsonObject;
}

const received: Received[] = [];
let onRecord: (record: JsonObject) => void = () => {};
let cloudflare: Server;
let runtime: Runtime;

const native = (response: string) => `data: ${JSON.stringify({ response, p: 'abc' })}\n\n`;

/** What the remote of the binding answers, by the name of the model. */
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = decodeObject(Buffer.concat(chunks).toString()) ?? {};
  const model = textOf(request.headers['mf-header-cf-consn-model-id']);
  const inputs = objectOf(body.inputs);
  received.push({ url: textOf(request.headers['mf-url']), model, inputs, options: objectOf(body.options) });
  const head = { 'cf-aig-run-id': `run-${received.length}` };
  if (model === '@cf/full') {
    response.writeHead(429, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({ internalCode: 3040, description: 'Capacity temporarily exceeded', name: 'AiError' }),
    );
  } else if (inputs.stream === true) {
    response.writeHead(200, { 'content-type': 'text/event-stream', ...head });
    response.write(native('Hel'));
    response.end(`${native(textOf(inputs.tail) || 'lo')}data: [DONE]\n\n`);
  } else {
    response.writeHead(200, { 'content-type': 'application/json', ...head });
    response.end(
      JSON.stringify({
        response: 'Hello',
        usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
      }),
    );
  }
}

beforeAll(async () => {
  cloudflare = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => cloudflare.listen(0, '127.0.0.1', resolve));
  const { port } = cloudflare.address() as AddressInfo;
  const worker: WorkerOptions = {
    vars: { AUTH: 'open', RETRIES: '0', HEARTBEAT_SECONDS: '0' },
    bindings: { AI: { type: 'ai', dev: { remote: true } } },
  };
  runtime = await startWorkers({
    workers: [worker],
    remote: new URL(`http://127.0.0.1:${port}`),
    onLog: (line) => {
      const entry = decodeObject(line);
      if (entry?.event === 'request') onRecord(entry);
    },
  });
});
afterAll(async () => {
  await runtime[Symbol.asyncDispose]();
  cloudflare.closeAllConnections();
  await new Promise((resolve) => cloudflare.close(resolve));
});

function ask(model: string, fields: JsonObject = {}, init: RequestInit = {}): Promise<Response> {
  return fetch(`${runtime.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: `cloudflare/${model}`,
      messages: [{ role: 'user', content: 'Hi' }],
      ...fields,
    }),
    ...init,
  });
}

test('W12 a request reaches the model through the gateway, and its response comes back', async () => {
  const response = await ask('@cf/meta/llama-3.3-70b-instruct-fp8-fast', { max_tokens: 9 });
  expect(response.status).toBe(200);
  expect(objectOf(decodeObject(await response.text())).choices).toMatchObject([
    { message: { content: 'Hello' }, finish_reason: 'stop' },
  ]);
  const { url, model, inputs, options } = received.at(-1) ?? {};
  expect(url).toMatch(/^https:\/\/workers-binding\.ai\/ai-gateway\/run/);
  expect(model).toBe('@cf/meta/llama-3.3-70b-instruct-fp8-fast');
  expect(inputs).toEqual({ messages: [{ role: 'user', content: 'Hi' }], max_tokens: 9 });
  expect(options).toMatchObject({ gateway: { id: 'default' } });
});

test('W12 the record has the id of the run', async () => {
  const recorded = Promise.withResolvers<JsonObject>();
  onRecord = recorded.resolve;
  await (await ask('@cf/recorded')).text();
  const record = await recorded.promise;
  expect(record.attempts).toMatchObject([{ status: 200, run_id: `run-${received.length}` }]);
});

test('W12 two hundred streams at once are each its own', async () => {
  const texts = await Promise.all(
    Array.from({ length: 200 }, async (_, index) => {
      const response = await ask('@cf/any', { stream: true, tail: `lo ${index}` });
      return contentOf(await response.text());
    }),
  );
  expect(texts).toEqual(Array.from({ length: 200 }, (_, index) => `Hello ${index}`));
});

test('W12 a refusal by number of the real class has its status and code', async () => {
  const response = await ask('@cf/full');
  expect(response.status).toBe(429);
  expect(objectOf(decodeObject(await response.text())?.error).message).toContain(
    'Capacity temporarily exceeded',
  );
});
