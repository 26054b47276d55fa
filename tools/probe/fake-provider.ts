/** A local provider for the probe's tests, and a provider table with errors. */
import { createServer, type ServerResponse } from 'node:http';
import { afterEach } from 'vitest';
import { compatibleProfile, configuredProvider } from '../../src/providers/compatible.ts';
import { REFUSED, renamed } from '../../src/request-translation/rules.ts';
import { isObject, type JsonObject, parseJson } from '../../src/shared/json.ts';
import type { ProbeBody } from './bodies.ts';
import type { Target } from './plan.ts';

export const KEY = 'secret-key-of-the-test';

const PROVIDER = configuredProvider(
  'compatible',
  compatibleProfile('compatible', [], {
    fields: {
      user: REFUSED,
      store: REFUSED,
      seed: renamed('random_seed'),
      max_completion_tokens: renamed('max_tokens'),
      presence_penalty: { kind: 'ignored' },
    },
    messages: { reasoning: [{ form: 'reasoning_content' }], roles: { developer: 'system' } },
    streamUsage: 'on_request',
  }),
  'COMPATIBLE_API_KEY',
);

type Reply = (body: JsonObject, response: ServerResponse) => void;

const servers: { close(): void; closeAllConnections(): void }[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

/** Starts a local provider. `received` has the bodies of its requests. */
export async function serve(reply: Reply): Promise<{ target: Target; received: JsonObject[] }> {
  const received: JsonObject[] = [];
  const server = createServer(async (request, response) => {
    const body = parseJson(Buffer.concat(await Array.fromAsync(request)).toString());
    if (!isObject(body)) return void response.writeHead(400).end();
    received.push(body);
    reply(body, response);
  });
  servers.push(server);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const address = server.address();
  const port = isObject(address) ? address.port : 0;
  const target = {
    provider: PROVIDER,
    baseUrl: `http://127.0.0.1:${port}`,
    key: KEY,
    model: 'small',
    fimModel: null,
    timeoutMs: 5000,
  };
  return { target, received };
}

export function send(
  response: ServerResponse,
  status: number,
  body: JsonObject,
  headers: Record<string, string> = {},
) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

/** Rejects bodies that have one of these fields. */
export function refusing(...fields: readonly string[]): Reply {
  return (body, response) => {
    const field = fields.find((name) => name in body);
    if (field === undefined) return send(response, 200, { choices: [{ finish_reason: 'stop' }] });
    send(response, 400, { error: { message: `Unknown parameter: '${field}'.`, code: 'unknown_parameter' } });
  };
}

export function body(name: string, more: JsonObject = {}, effect?: ProbeBody['effect']): ProbeBody {
  const messages = [{ role: 'user', content: 'Go' }];
  return { name, route: 'chat', body: { messages, ...more }, ...(effect && { effect }) };
}
