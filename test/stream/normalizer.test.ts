/** Tests the normalizer's chunks, choices and deltas: what is sent once, and what is not sent. */
import { describe, expect, test } from 'vitest';
import type { ChoicePart, ChunkPart } from '../../src/canonical/part.ts';
import { toolCallId } from '../../src/canonical/tool-call-id.ts';
import { MAX_TOOL_CALLS } from '../../src/shared/limits.ts';
import { bench, call, choice, choicesOf, NOW_SECONDS, part } from './parts.ts';

function deltasOf(...parts: Partial<ChoicePart>[]) {
  return choicesOf(...parts).map(
    (choices) => choices?.map((one) => ('delta' in one ? one.delta : null)) ?? null,
  );
}

describe('Normalizer.read, the chunk', () => {
  test('C1 C3 a chat chunk: all keys of chunk and choice, in their order', () => {
    const chunk = bench().normalizer.read(
      part([choice({ content: 'a' })], { id: 'i', created: 5, model: 'm' }),
    );
    expect(JSON.stringify(chunk)).toBe(
      '{"id":"i","object":"chat.completion.chunk","created":5,"model":"provider/m",' +
        '"choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"logprobs":null,"finish_reason":null}]}',
    );
  });

  test('C1 a chat chunk with both labels: between model and choices, in their order', () => {
    const labels = { systemFingerprint: 'f', serviceTier: 't' };
    const chunk = bench().normalizer.read(part([choice({ content: 'a' })], labels));
    expect(Object.keys(chunk ?? {})).toEqual([
      'id',
      'object',
      'created',
      'model',
      'service_tier',
      'system_fingerprint',
      'choices',
    ]);
  });

  test('C10 a text chunk: all its keys, in their order, and no service_tier', () => {
    const { normalizer } = bench({ shape: 'text' });
    const read = (fields: Partial<ChunkPart>) =>
      JSON.stringify(normalizer.read(part([choice({ content: 'a' })], fields)));
    const head = `{"id":"cmpl-0001","object":"text_completion","created":${NOW_SECONDS},"model":"provider/asked-for",`;
    const choices = '"choices":[{"index":0,"text":"a","logprobs":null,"finish_reason":null}]}';
    expect(read({ serviceTier: 't' })).toBe(head + choices);
    expect(read({ systemFingerprint: 'f' })).toBe(`${head}"system_fingerprint":"f",${choices}`);
  });

  test('C2 id, created, model: the first given by the first chunk sent, also in parts that send nothing', () => {
    const { normalizer } = bench();
    expect(normalizer.read(part([choice()], { id: 'i' }))).toBeNull();
    expect(normalizer.read(part([], { created: 7, id: 'other' }))).toBeNull();
    expect(normalizer.read(part([choice({ content: 'a' })], { model: 'm', created: 8 }))).toMatchObject({
      id: 'i',
      created: 7,
      model: 'provider/m',
    });
  });

  test('C2 id, created, model that come after the first chunk: change nothing', () => {
    const { normalizer } = bench();
    const made = { id: 'chatcmpl-0001', created: NOW_SECONDS, model: 'provider/asked-for' };
    expect(normalizer.read(part([choice({ content: 'a' })]))).toMatchObject(made);
    const late = { id: 'i', created: 7, model: 'm' };
    expect(normalizer.read(part([choice({ content: 'b' })], late))).toMatchObject(made);
  });

  test('C1 service_tier and system_fingerprint: absent before the first, then the latest received', () => {
    const { normalizer } = bench();
    const read = (fields: Partial<ChunkPart>) => {
      const chunk = normalizer.read(part([choice({ content: 'a' })], fields)) ?? {};
      return Object.fromEntries(Object.entries(chunk).filter(([key]) => key.startsWith('s')));
    };
    expect(read({})).toEqual({});
    expect(read({ systemFingerprint: 'f' })).toEqual({ system_fingerprint: 'f' });
    expect(read({ serviceTier: 't', systemFingerprint: 'g' })).toEqual({
      service_tier: 't',
      system_fingerprint: 'g',
    });
    expect(read({})).toEqual({ service_tier: 't', system_fingerprint: 'g' });
  });

  test('C1 labels in a part that sends nothing: on the next chunk', () => {
    const { normalizer } = bench();
    expect(normalizer.read(part([], { serviceTier: 't' }))).toBeNull();
    expect(normalizer.finishOpenChoices()).toBeNull();
    expect(normalizer.read(part([choice({ content: 'a' })]))).toMatchObject({ service_tier: 't' });
  });

  test('C1 the revision: changes with a label and with a finish, and with nothing else', () => {
    const { normalizer } = bench();
    const revisions = [
      part([choice({ content: 'a' })], { serviceTier: 't', systemFingerprint: 'f' }),
      part([choice({ content: 'a' })], { serviceTier: 't', systemFingerprint: 'f', id: 'i', model: 'm' }),
      part([choice({ content: 'a' })]),
      part([choice({ content: 'a' })], { systemFingerprint: 'g' }),
      part([choice({ finishWord: 'stop' })]),
    ].map((one) => {
      normalizer.read(one);
      return normalizer.revision;
    });
    expect(revisions).toEqual([1, 1, 1, 2, 3]);
  });
});

describe('Normalizer.read, the delta', () => {
  test('C4 role: only on the first delta, sent by the upstream or not', () => {
    expect(deltasOf({ content: 'a' }, { content: 'b', hasRole: true })).toEqual([
      [{ role: 'assistant', content: 'a' }],
      [{ content: 'b' }],
    ]);
  });

  test('C4 role alone: makes a chunk, once', () => {
    expect(deltasOf({ hasRole: true }, { hasRole: true })).toEqual([[{ role: 'assistant' }], null]);
  });

  test('C4 empty content: kept with the role if the upstream sent it, else dropped', () => {
    expect(deltasOf({ hasRole: true, content: '' }, { content: '' }, { content: '', refusal: 'no' })).toEqual(
      [[{ role: 'assistant', content: '' }], null, [{ refusal: 'no' }]],
    );
    expect(deltasOf({ refusal: 'no' })).toEqual([[{ role: 'assistant', refusal: 'no' }]]);
  });

  test('C4 all fields at once: in the order of the contract', () => {
    const [delta] = deltasOf({
      toolCalls: [call({ name: 'f' })],
      refusal: 'r',
      reasoning: 't',
      reasoningDetails: [{ type: 'reasoning.text' }],
      content: 'c',
    });
    expect(Object.keys(delta?.[0] ?? {})).toEqual([
      'role',
      'content',
      'reasoning_content',
      'refusal',
      'tool_calls',
      'reasoning_details',
    ]);
  });

  test('A7 reasoning details alone: make a chunk. An empty list makes none', () => {
    const details = [{ signature: 's', text: null, any: [1] }];
    expect(deltasOf({ content: 'a' }, { reasoningDetails: details }, { reasoningDetails: [] })).toEqual([
      [{ role: 'assistant', content: 'a' }],
      [{ reasoning_details: details }],
      null,
    ]);
  });

  test('A7 REASONING=strip: details without their text, or none', () => {
    const { normalizer } = bench({ reasoning: 'strip' });
    const text = choice({ reasoning: 'a', reasoningDetails: [{ type: 'reasoning.text', text: 'a' }] });
    expect(normalizer.read(part([text]))).toBeNull();
    const sealed = choice({ reasoning: 'b', reasoningDetails: [{ text: 'b', data: 'd' }] });
    expect(normalizer.read(part([sealed]))?.choices).toMatchObject([
      { delta: { role: 'assistant', reasoning_details: [{ data: 'd' }] } },
    ]);
  });

  test('A7 extra_content of a call: on its fragment', () => {
    const toolCalls = [call({ id: 'a', name: 'f', extraContent: { google: {} } })];
    expect(deltasOf({ toolCalls })).toMatchObject([
      [{ tool_calls: [{ id: 'a', extra_content: { google: {} } }] }],
    ]);
  });

  test('C5 an empty part: no chunk, and the role waits for the first that is not empty', () => {
    expect(deltasOf({}, { content: 'a' })).toEqual([null, [{ role: 'assistant', content: 'a' }]]);
  });

  test('C5 one of two choices is empty: the chunk contains only the other', () => {
    const { normalizer } = bench();
    normalizer.read(part([choice({ content: 'a' }), choice({ index: 1, content: 'b' })]));
    const chunk = normalizer.read(part([choice(), choice({ index: 1, content: 'c' })]));
    expect(chunk?.choices).toMatchObject([{ index: 1, delta: { content: 'c' } }]);
  });

  test('C9 logprobs alone: make a chunk', () => {
    const logprobs = { content: [{ token: 'a', logprob: -1, bytes: null, top_logprobs: [] }], refusal: null };
    expect(choicesOf({ logprobs })).toEqual([
      [{ index: 0, delta: { role: 'assistant' }, logprobs, finish_reason: null }],
    ]);
  });

  test('C6 reasoning under REASONING=strip: not sent, but metered', () => {
    const { normalizer, accumulator } = bench({ reasoning: 'strip' });
    expect(normalizer.read(part([choice({ reasoning: 'thought' })]))).toBeNull();
    expect(accumulator.countUsage().usage.completion_tokens).toBeGreaterThan(0);
    expect(normalizer.read(part([choice({ content: 'a', reasoning: 'b' })]))?.choices).toMatchObject([
      { delta: { role: 'assistant', content: 'a' } },
    ]);
  });

  test('C10 reasoning, its details, refusal and tool calls in the text shape: not sent, but metered', () => {
    const { normalizer, accumulator } = bench({ shape: 'text' });
    const toolCalls = [call({ name: 'f', arguments: '{}' })];
    const dropped = { reasoning: 'a', refusal: 'b', toolCalls, reasoningDetails: [{ signature: 's' }] };
    expect(normalizer.read(part([choice({ hasRole: true, content: '', ...dropped })]))).toBeNull();
    expect(accumulator.countUsage().usage.completion_tokens).toBeGreaterThan(0);
  });

  test('C10 logprobs of the chat form in the text shape: offsets go on from part to part, in each choice', () => {
    const { normalizer } = bench({ shape: 'text' });
    const offsetOf = (index: number, token: string) => {
      const logprobs = { content: [{ token, logprob: -1, bytes: null, top_logprobs: [] }], refusal: null };
      const chunk = normalizer.read(part([choice({ index, content: token, logprobs })]));
      return chunk?.object === 'text_completion' && chunk.choices[0]?.logprobs?.text_offset;
    };
    expect([offsetOf(0, 'abc'), offsetOf(1, 'd'), offsetOf(0, 'ef'), offsetOf(0, 'g')]).toEqual([
      [0],
      [0],
      [3],
      [5],
    ]);
  });

  test('C7 a generated id: nine letters and digits, generated after the stream id of the same chunk', () => {
    const { normalizer } = bench();
    expect(normalizer.read(part([choice({ toolCalls: [call({ name: 'f' })] })]))).toMatchObject({
      id: 'chatcmpl-0001',
      choices: [{ delta: { tool_calls: [{ id: toolCallId('0002') }] } }],
    });
  });
});

describe('Normalizer, bounds', () => {
  test('B1 the last call that the bound allows, in several fragments: no fault', () => {
    const { normalizer } = bench();
    const calls = Array.from({ length: MAX_TOOL_CALLS }, (_, index) => call({ index, name: 'f' }));
    normalizer.read(part([choice({ toolCalls: calls })]));
    normalizer.read(part([choice({ toolCalls: [call({ index: MAX_TOOL_CALLS - 1, arguments: '{}' })] })]));
    expect(normalizer.fault).toBeNull();
  });

  test('B1 one call more than the bound allows: a fault', () => {
    const { normalizer } = bench();
    const calls = Array.from({ length: MAX_TOOL_CALLS + 1 }, (_, index) => call({ index, name: 'f' }));
    normalizer.read(part([choice({ toolCalls: calls })]));
    expect(normalizer.fault).toMatchObject({ code: 'upstream_invalid' });
  });
});
