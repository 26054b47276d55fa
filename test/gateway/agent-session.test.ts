/** The session by which docs/budgets.md says what a team of agents is charged: its figures are computed here. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf } from '../../tools/simulator/json.ts';
import { LimitedGateway, startTimer } from './limited-gateway.ts';
import './upstreams.ts';

const AGENTS = 10;
/** Of each prompt, of 24,000 tokens in 96 KB. */
const PROMPT = { input_tokens: 240, cache_read_input_tokens: 23_280, cache_creation_input_tokens: 480 };
const BYTES = 96_000;
const OUTPUT = 3000;
/** The output after which every second agent is cancelled. */
const CANCELLED_AFTER = 1000;
const MAX_TOKENS = 32_000;
const BUDGET = 3;
/** USD a million tokens of Claude Sonnet 4.5. */
const RATES = { input: 3, read: 0.3, write: 3.75, output: 15 };
const WORDS = 50;
const encoder = new TextEncoder();
const STARTED = Date.now();
/** Deadlines never fire. */
const LONG_MS = 25_000;
/** What is in flight when an agent leaves is not always the same. */
const CENT = 0.011;

function billed(output: number): number {
  const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens } = PROMPT;
  const prompt =
    input_tokens * RATES.input +
    cache_read_input_tokens * RATES.read +
    cache_creation_input_tokens * RATES.write;
  return (prompt + output * RATES.output) / 1e6;
}

function data(event: JsonObject): string {
  return `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** All agents send one request before the first of them has its answer. */
async function play(mode: 'running' | 'hard') {
  const written: number[] = [];
  const gateway = new LimitedGateway(
    { ANTHROPIC_API_KEY: 'k', RETRIES: '0', HEARTBEAT_SECONDS: '0' },
    {
      // No time passes, so that nothing may have been written unseen.
      clock: { now: () => STARTED, startTimer: (ms, onFire) => startTimer(ms < LONG_MS ? 20 : null, onFire) },
      fetch: async (_, init) => {
        const at = written.push(0) - 1;
        let isBegun = false;
        const body = new ReadableStream({
          type: 'bytes',
          start: (controller) =>
            init?.signal?.addEventListener('abort', () => controller.error(new Error('aborted'))),
          pull: async (controller) => {
            await new Promise(setImmediate);
            if (init?.signal?.aborted === true) return;
            const output = written[at] ?? 0;
            const text = 'token '.repeat(WORDS);
            if (!isBegun) {
              isBegun = true;
              const facts = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [] };
              const message = { ...facts, stop_reason: null, usage: { ...PROMPT, output_tokens: 1 } };
              const block = {
                type: 'content_block_start',
                index: 0,
                content_block: { type: 'text', text: '' },
              };
              controller.enqueue(encoder.encode(data({ type: 'message_start', message }) + data(block)));
            } else if (output < OUTPUT) {
              const delta = { type: 'text_delta', text };
              controller.enqueue(encoder.encode(data({ type: 'content_block_delta', index: 0, delta })));
              written[at] = output + WORDS;
            } else {
              const end = { type: 'message_delta', delta: { stop_reason: 'end_turn' } };
              const usage = { ...PROMPT, output_tokens: output };
              const events = [
                { type: 'content_block_stop', index: 0 },
                { ...end, usage },
                { type: 'message_stop' },
              ];
              controller.enqueue(encoder.encode(events.map(data).join('')));
              controller.close();
              controller.byobRequest?.respond(0);
            }
          },
        });
        return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
      },
    },
  );
  const token = await gateway.key({ budget: { USD: BUDGET, mode } });
  const body = {
    model: 'anthropic/claude-sonnet-4-5',
    max_tokens: MAX_TOKENS,
    stream: true,
    messages: [{ role: 'user', content: 'Four'.repeat(BYTES / 4) }],
  };
  const responses: Response[] = [];
  for (let agent = 0; agent < AGENTS; agent++)
    responses.push(await gateway.post('/v1/messages', token, body));
  const statuses = await Promise.all(
    responses.map(async (response, agent) => {
      const reader = response.body?.getReader();
      const decoder = new TextDecoder();
      for (let text = ''; response.status === 200; ) {
        const next = await reader?.read();
        if (next?.done !== false) break;
        text += decoder.decode(next.value, { stream: true });
        if (agent % 2 === 0 || text.split('token ').length <= CANCELLED_AFTER) continue;
        await reader?.cancel();
        break;
      }
      return response.status;
    }),
  );
  await gateway.idle();
  const key = decodeObject(await (await gateway.fetch('/v1/key', token)).text());
  return {
    admitted: statuses.filter((status) => status === 200).length,
    billed: written.reduce((sum, output) => sum + billed(output), 0),
    charged: Number(objectOf(key?.budget).spent),
  };
}

test('G9 the figures of the session in the documents are those of the gateway', async () => {
  const running = await play('running');
  const hard = await play('hard');
  const page = readFileSync('docs/budgets.md', 'utf8').replace(/\s+/g, ' ');
  const figures =
    /`running` admits all, and charges \$(\d+\.\d+) for \$(\d+\.\d+) billed; `hard` admits (\d+), and charges \$(\d+\.\d+) for \$(\d+\.\d+)/
      .exec(page)
      ?.slice(1)
      .map(Number);
  const computed = [running.charged, running.billed, hard.admitted, hard.charged, hard.billed];
  expect(running.admitted).toBe(AGENTS);
  expect(figures).toHaveLength(computed.length);
  for (const [i, figure] of computed.entries())
    expect(Math.abs(figure - (figures?.[i] ?? 0)), `${computed}`).toBeLessThan(CENT);
});
