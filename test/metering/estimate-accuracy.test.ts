/** Compares the estimate of completion tokens with what the recorded streams of real providers reported (M3). */
import { describe, expect, test } from 'vitest';
import { eventsOf } from '../../tools/conformance/contract/content.ts';
import { isObject, type Json, listOf, objectOf, parseJson } from '../../tools/conformance/contract/json.ts';
import { convertStream } from '../contract/convert.ts';
import { type Recording, readRecordings, recordingsNote } from '../contract/recordings.ts';
import { readUpstream } from '../contract/reference-reader.ts';

const MAX_MEDIAN_ERROR = 0.15;
/** Fewer recordings would mean that their usage is no longer found. */
const MIN_RECORDINGS = 60;

const encoder = new TextEncoder();

/** The stream with all of its usage removed. */
function withoutUsage({ kind, text }: Recording): string {
  const events =
    kind === 'sse' ? [...eventsOf(text)].map(({ data }) => data) : [...text.split('\n'), '[DONE]'];
  return events.map((data) => `data: ${strip(data)}\n\n`).join('');
}

function strip(data: string): string {
  const event = parseJson(data);
  if (!isObject(event)) return data;
  const { usage: _, x_groq: __, ...rest } = event;
  return JSON.stringify({ ...rest, choices: listOf(event.choices).map(withoutOwnUsage) });
}

function withoutOwnUsage(choice: Json): Json {
  const { usage: _, ...rest } = objectOf(choice);
  return rest;
}

function estimate(recording: Recording): { readonly tokens: number; readonly estimated: boolean } {
  const { text } = recording;
  const isText = /"object":\s*"text_completion"/.test(text) && !text.includes('"delta"');
  const route = isText ? 'completions' : 'chat';
  const bytes = encoder.encode(withoutUsage(recording));
  const { accumulator } = convertStream([bytes], { provider: 'openai', route, model: 'm', usageChunk: true });
  const { usage, estimated } = accumulator.countUsage();
  return { tokens: usage.completion_tokens, estimated };
}

describe.skipIf(recordingsNote !== '')(`estimated completion tokens${recordingsNote}`, () => {
  const reported = readRecordings()
    .filter(({ protocol }) => protocol === 'openai')
    .map((recording) => ({
      recording,
      tokens: readUpstream(recording.text, recording.kind).usage?.completion ?? 0,
    }))
    .filter(({ tokens }) => tokens > 0)
    .map(({ recording, tokens }) => ({ name: recording.name, reported: tokens, ...estimate(recording) }));

  test(`M3: at least ${MIN_RECORDINGS} recordings report completion tokens, and without the report each is estimated`, () => {
    expect(reported.length).toBeGreaterThanOrEqual(MIN_RECORDINGS);
    expect(reported.filter(({ estimated }) => !estimated)).toEqual([]);
  });

  test(`M3: the median absolute error is at most ${MAX_MEDIAN_ERROR * 100}%`, () => {
    const errors = reported
      .map(({ reported, tokens }) => Math.abs(tokens - reported) / reported)
      .sort((a, b) => a - b);
    expect(errors[errors.length >> 1]).toBeLessThanOrEqual(MAX_MEDIAN_ERROR);
  });
});

test.runIf(recordingsNote !== '')(`M3: estimates are not compared with recordings${recordingsNote}`, () => {
  expect(readRecordings()).toEqual([]);
});
