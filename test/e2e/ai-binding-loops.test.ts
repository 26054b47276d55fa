/** Tool loops of every client protocol at the binding `AI` in workerd, before a simulator that refuses what Cloudflare refuses (W12). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loopCell } from '../../tools/matrix/cell.ts';
import { AI_BINDING, AiRemote } from './ai-remote.ts';
import { type Gateway, startGateway } from './gateway.ts';

let remote: AiRemote;
let gateway: Gateway;
beforeAll(async () => {
  remote = await AiRemote.start();
  // No token of Cloudflare's: the binding is all that there is.
  const vars = { CLOUDFLARE_AI_TOKEN: undefined, CLOUDFLARE_ACCOUNT_ID: undefined };
  gateway = await startGateway({ vars, bindings: AI_BINDING, remote: remote.url });
  remote.simulatorUrl = gateway.simulator.url;
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await remote[Symbol.asyncDispose]();
});

describe.each(['@cf/openai/gpt-oss-20b', 'openai/gpt-6.1-terra', 'anthropic/claude-haiku-4-5'])(
  'W12 %s at the binding',
  (model) => {
    test.each(['chat', 'messages', 'responses', 'gemini'] as const)(
      'a client of %s finishes a task of five steps with parallel calls, streamed and whole',
      async (protocol) => {
        const before = remote.models.length;
        await loopCell(gateway, protocol, `cloudflare/${model}`);
        const called = remote.models.slice(before);
        expect(called.length).toBeGreaterThan(5);
        expect(new Set(called)).toEqual(new Set([model]));
      },
    );
  },
);
