/** The stop sequence that ended an output, as Anthropic's SDK sees it, whatever the provider speaks (I8). */
import Anthropic from '@anthropic-ai/sdk';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { fetchOf } from './sdk-views.ts';
import { DONE, event, json, RoutedGateway, type Script, sse } from './upstreams.ts';

const ENV = {
  ANTHROPIC_API_KEY: 'key-of-anthropic',
  ANTHROPIC_BASE_URL: 'https://anthropic',
  UP_KEY: 'key-of-up',
  PROVIDERS: JSON.stringify({ own: { base_url: 'https://own', api_key: 'UP_KEY' } }),
  // A step with fields is translated, also where the provider speaks the client's protocol.
  ALIASES: JSON.stringify({ claude: [{ model: 'anthropic/m', set: { temperature: 1 } }] }),
};

async function stopOf(model: string, script: Script, isStreamed: boolean) {
  const gateway = new RoutedGateway({ m: [script] }, ENV);
  const { messages } = new Anthropic({
    apiKey: 'x',
    baseURL: 'http://weir',
    maxRetries: 0,
    fetch: fetchOf(gateway),
  });
  const body: Anthropic.MessageCreateParamsNonStreaming = {
    model,
    max_tokens: 99,
    stop_sequences: ['END'],
    messages: [{ role: 'user', content: 'Hello' }],
  };
  const message = isStreamed ? await messages.stream(body).finalMessage() : await messages.create(body);
  return [message.stop_reason, message.stop_sequence];
}

/** A chat server's answer with these members beside its finish. */
function chat(finish_reason: string, members: object, delta: object = { content: 'So' }): Script {
  return (isStreamed) =>
    isStreamed
      ? sse(
          event({ role: 'assistant', ...delta }),
          `data: ${JSON.stringify({ id: 'up', choices: [{ index: 0, delta: {}, finish_reason, ...members }] })}\n\n`,
          DONE,
        )
      : json({
          id: 'up',
          choices: [{ index: 0, message: { role: 'assistant', ...delta }, finish_reason, ...members }],
        });
}

function claude(delta: JsonObject, block: JsonObject = { type: 'text', text: 'So' }): Script {
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage: {} };
  const events = [
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: block },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta, usage: { output_tokens: 3 } },
    { type: 'message_stop' },
  ];
  return (isStreamed) =>
    isStreamed
      ? sse(...events.map((one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`))
      : json({ ...message, content: [block], ...delta });
}

const CALL = {
  tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
};
const USE = { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} };

describe('I8 the stop sequence that matched', () => {
  const cases: readonly (readonly [name: string, model: string, script: Script, stop: readonly unknown[]])[] =
    [
      ['stop_reason of vLLM', 'own/m', chat('stop', { stop_reason: 'END' }), ['stop_sequence', 'END']],
      ['matched_stop of SGLang', 'own/m', chat('stop', { matched_stop: 'END' }), ['stop_sequence', 'END']],
      [
        'both, one null',
        'own/m',
        chat('stop', { stop_reason: null, matched_stop: '\n' }),
        ['stop_sequence', '\n'],
      ],
      [
        'an output of the sequence alone',
        'own/m',
        chat('stop', { stop_reason: 'END' }, {}),
        ['stop_sequence', 'END'],
      ],
      [
        'Claude’s own',
        'claude',
        claude({ stop_reason: 'stop_sequence', stop_sequence: 'END' }),
        ['stop_sequence', 'END'],
      ],
      [
        'Claude’s own, passed on',
        'anthropic/m',
        claude({ stop_reason: 'stop_sequence', stop_sequence: 'END' }),
        ['stop_sequence', 'END'],
      ],
      ['the number of a token', 'own/m', chat('stop', { stop_reason: 128009 }), ['end_turn', null]],
      ['the number of a token at SGLang', 'own/m', chat('stop', { matched_stop: 2 }), ['end_turn', null]],
      ['null', 'own/m', chat('stop', { stop_reason: null, matched_stop: null }), ['end_turn', null]],
      ['an empty text', 'own/m', chat('stop', { stop_reason: '' }), ['end_turn', null]],
      [
        'a word for the end, of a translator of Claude',
        'own/m',
        chat('stop', { stop_reason: 'end_turn' }),
        ['end_turn', null],
      ],
      [
        'Claude’s end',
        'claude',
        claude({ stop_reason: 'end_turn', stop_sequence: null }),
        ['end_turn', null],
      ],
      ['at the limit', 'own/m', chat('length', { stop_reason: 'END' }), ['max_tokens', null]],
      ['beside a call', 'own/m', chat('stop', { stop_reason: 'END' }, CALL), ['tool_use', null]],
      [
        'beside a call of Claude',
        'claude',
        claude({ stop_reason: 'stop_sequence', stop_sequence: 'END' }, USE),
        ['tool_use', null],
      ],
    ];
  test.each(cases.flatMap((one) => [true, false].map((isStreamed) => [...one, isStreamed] as const)))(
    '%s: model %s, streamed: $4',
    async (_, model, script, stop, isStreamed) => {
      expect(await stopOf(model, script, isStreamed)).toEqual(stop);
    },
  );

  test('the same in the chunk of the last text', async () => {
    const last = { index: 0, delta: { content: 'So' }, finish_reason: 'stop', stop_reason: 'END' };
    const script = sse(`data: ${JSON.stringify({ id: 'up', choices: [last] })}\n\n`, DONE);
    expect(await stopOf('own/m', script, true)).toEqual(['stop_sequence', 'END']);
  });

  test.each(['own/m', 'claude'])(
    'C3 is not in the chunks of a chat client, which have no place for it, at %s',
    async (model) => {
      const script =
        model === 'claude'
          ? claude({ stop_reason: 'stop_sequence', stop_sequence: 'END' })
          : chat('stop', { stop_reason: 'END' });
      for (const stream of [true, false]) {
        const gateway = new RoutedGateway({ m: [script] }, ENV);
        const text = await (await gateway.ask({ model, stream })).text();
        expect(text).toContain('"finish_reason":"stop"');
        expect(text).not.toContain('END');
      }
    },
  );
});
