/** Runs the simple reader over every recorded provider stream, and reports if they are missing. */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../tools/conformance/contract/json.ts';
import { EMPTY_RECORDINGS, readRecordings, recordingsNote } from './recordings.ts';
import { type Content, readUpstream } from './reference-reader.ts';

describe.skipIf(recordingsNote !== '')(`readUpstream, the recordings${recordingsNote}`, () => {
  const recordings = readRecordings();
  const shaped = recordings.filter(({ protocol }) => protocol === 'openai');

  function isEmpty(content: Content): boolean {
    const withOutput = [...content.choices.values()].filter(
      ({ text, reasoning, refusal, toolCalls }) => text + reasoning + refusal !== '' || toolCalls.length > 0,
    );
    return withOutput.length === 0;
  }

  test('every protocol that INDEX.md names is recorded', () => {
    const protocols = new Set(recordings.map(({ protocol }) => protocol));
    expect([...protocols].sort()).toEqual([
      'anthropic',
      'cohere',
      'gemini',
      'ollama',
      'openai',
      'responses',
      'tgi',
    ]);
  });

  test('the listed names: each is there', () => {
    const names = recordings.map(({ name }) => name);
    expect([...EMPTY_RECORDINGS.keys()].filter((name) => !names.includes(name))).toEqual([]);
  });

  test('OpenAI-shaped recordings: exactly the listed ones are empty', () => {
    const empty = shaped.filter(({ text, kind }) => isEmpty(readUpstream(text, kind)));
    expect(empty.map(({ name }) => name)).toEqual([...EMPTY_RECORDINGS.keys()].sort());
  });

  test('OpenAI-shaped recordings: exactly the recorded failure fails', () => {
    const failed = shaped.filter(({ text, kind }) => readUpstream(text, kind).error !== null);
    expect(failed.map(({ name }) => name)).toEqual(['groq--event-error-after-text.sse']);
  });

  test('other protocols: nothing is read from them', () => {
    const read = recordings.filter(
      ({ protocol, text, kind }) => protocol !== 'openai' && !isEmpty(readUpstream(text, kind)),
    );
    expect(read.map(({ name }) => name)).toEqual([]);
  });

  test.each<[name: string, choice: JsonObject]>([
    ['together--text-eos.sse', { text: '2', finish: 'eos' }],
    ['openrouter--chunk-after-finish.sse', { text: '10', finish: 'stop' }],
    ['mistral--small-thinking-closed-flag.jsonl', { text: '391', finish: 'stop' }],
    ['writer--tool-call-nulls.sse', { finish: 'tool_calls' }],
    ['snowflake--no-finish.sse', { text: '4', finish: null }],
  ])('%s: the content that a person reads', (wanted, choice) => {
    const found = recordings.find(({ name }) => name === wanted);
    expect(readUpstream(found?.text ?? '', found?.kind ?? 'sse').choices.get(0)).toMatchObject(choice);
  });
});
