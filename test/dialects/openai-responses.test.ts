/** Tests what is counted of an upstream's own Responses stream: its text, its usage and its end (N2). */
import { describe, expect, test } from 'vitest';
import { openaiResponses } from '../../src/dialects/openai-responses.ts';
import { xai } from '../../src/providers/xai.ts';
import { eventsIn } from '../clients/responses/check.ts';
import { readResponse } from '../clients/responses/reading.ts';
import { objectOf } from '../contract/json.ts';
import { readRecordings, recordingsNote } from '../contract/recordings.ts';

const recordings = readRecordings().filter(({ dialect, kind }) => dialect === 'responses' && kind === 'sse');
const named = recordings.map(({ name, text }) => [name, text.replaceAll('\r\n', '\n')] as const);

describe.skipIf(recordingsNote !== '')(`openaiResponses, providers' own streams${recordingsNote}`, () => {
  test.each(named)('N2 %s: its texts, calls, usage and end, streamed and whole alike', (_, text) => {
    const reader = openaiResponses.open({}, 'openai');
    const events = eventsIn(text);
    const parts = events.flatMap((event) => reader.event(event, '') ?? []);
    const response = objectOf(events.at(-1)?.response);
    const read = readResponse(response).choices.get(0);
    const whole = reader.plain(response);
    for (const choices of [parts.flatMap((part) => part.choices), whole.choices]) {
      const calls = choices.flatMap(({ toolCalls }) => toolCalls);
      expect(choices.map(({ content }) => content).join('')).toBe(read?.text);
      expect(choices.map(({ refusal }) => refusal).join('')).toBe(read?.refusal);
      expect(calls.flatMap(({ name }) => name ?? [])).toEqual(read?.toolCalls.map(({ name }) => name));
      expect(calls.map((call) => call.arguments).join('')).toBe(
        read?.toolCalls.map((call) => call.arguments).join(''),
      );
      expect(choices.filter(({ finishWord }) => finishWord !== null)).toHaveLength(1);
    }
    const usage = objectOf(response.usage);
    const last = parts.at(-1);
    expect(last).toMatchObject({ ends: true, error: null });
    for (const part of [last, whole]) {
      expect(part?.usage).toMatchObject({ prompt: usage.input_tokens, completion: usage.output_tokens });
    }
    expect(parts.slice(0, -1).filter((part) => part.ends === true || part.usage !== null)).toEqual([]);
  });
});

test('P3 what xAI says that an answer costs is read from its last event', () => {
  const response = {
    object: 'response',
    status: 'completed',
    usage: { input_tokens: 1, cost_in_usd_ticks: 5_143_500 },
  };
  const reader = openaiResponses.open(xai.quirks, 'openai');
  const part = reader.event({ type: 'response.completed', response }, 'response.completed');
  expect(part?.usage?.cost).toBe(514_350);
});

test.each([
  [{ type: 'error', error: { code: 'insufficient_quota', message: 'm' } }, 'insufficient_quota'],
  [{ error: { code: 'overloaded', message: 'm' } }, 'overloaded'],
  [
    {
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'rate_limit_exceeded', message: 'm' } },
    },
    'rate_limit_exceeded',
  ],
])('E2 %j is an error', (event, code) => {
  expect(openaiResponses.open({}, 'openai').event(event, '')?.error).toMatchObject({ code, message: 'm' });
});

test('N2 an event that this dialect does not know says nothing, and ends nothing', () => {
  const part = openaiResponses.open({}, 'openai').event({ type: 'response.audio.delta', delta: 'AA' }, '');
  expect(part).toMatchObject({ choices: [], usage: null, error: null });
  expect(part).not.toHaveProperty('ends');
});
