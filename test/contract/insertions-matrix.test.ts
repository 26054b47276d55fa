/**
 * Puts an error in a form that no provider here has, a second finish or a repeated chunk at every place of every recorded stream: nothing
 * incomplete looks complete, and nothing is lost. `npm test` tries a few places of each, the slow suite every second; STEP=1 tries all.
 */
import { describe, expect, test } from 'vitest';
import { messages } from '../../src/protocols/anthropic-messages/client.ts';
import { ResponsesWriter } from '../../src/protocols/openai-responses/client-writer.ts';
import { ROUTE_SHAPES } from '../../src/providers/provider.ts';
import { check } from '../../tools/conformance/contract/check.ts';
import type { Content } from '../../tools/conformance/contract/content.ts';
import { parseJson } from '../../tools/conformance/contract/json.ts';
import { SOURCES } from '../protocols/anthropic-messages/recorded-source.ts';
import { sessionOf } from '../protocols/openai-responses/run.ts';
import { stepOf } from '../random-run.ts';
import { type Conversion, convertStream } from './convert.ts';
import { expectationOf } from './expectation.ts';
import { recordingsNote } from './recordings.ts';
import { differences, readClient, readUpstream } from './reference-reader.ts';

const encoder = new TextEncoder();
const SAMPLED_PLACES = 4;

const REASON = 'Worker died';
const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
const KNOWN = data({ error: { message: REASON } });

const FORMS: readonly string[] = [
  data({ error: [{ message: REASON }] }),
  data({ error: true, message: REASON }),
  data({ success: false, errors: [{ code: 9999, message: REASON }] }),
  data({ code: 'Worker.Died', message: REASON }),
  data({ code: 4711, msg: REASON }),
  data({ choices: null, base_resp: { status_code: 1024, status_msg: REASON } }),
  data({ success: false, message: REASON }),
  data({ status: 'error', message: REASON }),
  data({ message: REASON }),
  `error: {"message":"${REASON}"}\n\n`,
];

/** The clients that an error is written for. */
const WRITERS: Readonly<Record<string, Conversion['openWriter']>> = {
  chat: undefined,
  messages: (options) => messages.streamWriter(null, options),
  responses: (options) => new ResponsesWriter(sessionOf(), options),
};

/** The events of a stream up to the last one of its protocol, which is the last of the list. */
function eventsOf(text: string): string[] {
  const events = text.match(/[\s\S]+?(?:\r?\n\r?\n|$)/g) ?? [];
  const end = events.findIndex((event) =>
    /\[DONE\]|"type": ?"(?:message_stop|response\.(?:completed|incomplete|failed)|error)"/.test(event),
  );
  return end < 0 ? events : events.slice(0, end + 1);
}

/** Places that are spread over the stream, with the last two. */
function placesIn(count: number): number[] {
  const all = Array.from({ length: count }, (_, place) => place);
  const step = stepOf(Math.max(1, Math.floor(count / SAMPLED_PLACES)), 5);
  return all.filter((place) => place % step === 0 || place >= count - 2);
}

function insert(events: readonly string[], place: number, event: string): string {
  return [...events.slice(0, place), event, ...events.slice(place)].join('');
}

/** What the client got but for the error's own words: its code depends on the form. */
function withoutError(text: string): string {
  return text
    .split('\n\n')
    .filter((frame) => !frame.includes(REASON))
    .join('\n\n');
}

function hasBrokenCall({ choices }: Content): boolean {
  const calls = [...choices.values()].flatMap(({ toolCalls }) => toolCalls);
  return calls.some(({ arguments: args }) => parseJson(args) === undefined);
}

const chatSources = SOURCES.filter(([, { conversion }]) => conversion.protocol === undefined)
  .filter(([, { text }]) => text.includes('"choices"'))
  .map(([name, source]) => [name, source] as const);

describe.skipIf(recordingsNote !== '')(`insertions into recorded streams${recordingsNote}`, () => {
  test.each(SOURCES)('F2 E2 %s: an error in an unknown form ends it as a known one does', (_, source) => {
    const events = eventsOf(source.text);
    for (const place of placesIn(events.length)) {
      for (const [at, [client, openWriter]] of Object.entries(WRITERS).entries()) {
        const form = FORMS[(place + at) % FORMS.length] ?? '';
        const run = (event: string) =>
          convertStream([encoder.encode(insert(events, place, event))], { ...source.conversion, openWriter });
        const [got, known] = [run(form), run(KNOWN)];
        expect(got.error, `${client}, place ${place}, ${form}`).not.toBeNull();
        expect(withoutError(got.text), `${client}, place ${place}, ${form}`).toBe(withoutError(known.text));
        expect(got.error?.message).toBe(known.error?.message);
      }
    }
  });

  test.each(chatSources)('C8 %s: a second finish: nothing is lost, or the stream fails', (_, source) => {
    const conversion: Conversion = { ...source.conversion, openWriter: undefined };
    const events = eventsOf(source.text);
    const whole = readClient(convertStream([encoder.encode(events.join(''))], conversion).text);
    for (const place of placesIn(events.length)) {
      const finish = data({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
      const upstream = insert(events, place, finish);
      const { text, error } = convertStream([encoder.encode(upstream)], conversion);
      const got = readClient(text);
      expect(check(encoder.encode(text), expectationOf(conversion)), `place ${place}`).toEqual([]);
      const read = readUpstream(upstream, 'sse');
      // The last finish word counts: with `stop` for `length`, a call that was cut is no call.
      if (error?.code === 'upstream_truncated' && hasBrokenCall(read)) continue;
      expect(differences(read, got), `place ${place}`).toEqual([]);
      if (error !== null && whole.error === null) expect(error.code).toBe('upstream_invalid');
      if (error !== null) continue;
      for (const [index, { text: all, reasoning, toolCalls, details }] of whole.choices) {
        const same = { text: all, reasoning, toolCalls, details };
        expect(got.choices.get(index), `place ${place}, choice ${index}`).toMatchObject(same);
      }
    }
  });

  test.each(chatSources)('C8 C7 %s: a repeated chunk: what it adds, and nothing else', (_, source) => {
    const conversion: Conversion = { ...source.conversion, openWriter: undefined };
    const shape = ROUTE_SHAPES[conversion.route];
    const events = eventsOf(source.text);
    for (const place of placesIn(events.length - 1)) {
      const upstream = insert(events, place, events[place] ?? '');
      const { text, error } = convertStream([encoder.encode(upstream)], conversion);
      expect(check(encoder.encode(text), expectationOf(conversion)), `place ${place}`).toEqual([]);
      const read = readUpstream(upstream, 'sse');
      // A piece of arguments that comes twice makes no JSON.
      if (error?.code === 'upstream_truncated' && hasBrokenCall(read)) continue;
      expect(differences(read, readClient(text), { shape }), `place ${place}`).toEqual([]);
    }
  });
});

test.runIf(recordingsNote !== '')(`recorded streams are left out${recordingsNote}`, () => {
  expect(SOURCES).toEqual([]);
});
