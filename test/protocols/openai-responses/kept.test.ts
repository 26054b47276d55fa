/** Tests the passthrough of responses that the gateway keeps: only ids, numbers and the echo of state change, and the ids go up again. */
import { describe, expect, test } from 'vitest';
import { FrameSplitter, isTerminal } from '../../../src/durable-responses/frames.ts';
import { restoreItems } from '../../../src/protocols/openai-responses/item-ids.ts';
import { responsesPassthrough } from '../../../src/protocols/openai-responses/passthrough.ts';
import { type KeptState, writeEcho } from '../../../src/protocols/openai-responses/session.ts';
import { openaiResponses } from '../../../src/protocols/openai-responses/upstream-reader.ts';
import { eventsOf } from '../../../tools/conformance/contract/content.ts';
import { type Conversion, convertStream, REQUEST_ID } from '../../contract/convert.ts';
import { framed, readRecordings, recordingsNote } from '../../contract/recordings.ts';
import { compareWays } from '../../stream/both-ways.ts';

const encoder = new TextEncoder();
const DIGITS = REQUEST_ID.replaceAll('-', '');
const PREVIOUS = `resp_${'0'.repeat(32)}`;
const KEPT: KeptState = { previousId: PREVIOUS, isStored: true, isBackground: true };

function conversion(kept: KeptState | null): Conversion {
  return {
    provider: 'openai',
    route: 'chat',
    model: 'asked-for',
    usageChunk: true,
    protocol: openaiResponses,
    openWriter: (options) =>
      responsesPassthrough(kept).streamWriter({ ...options, provider: 'openai', reasoning: 'pass' }),
  };
}

/** The bytes of an unkept stream from those of a kept one. */
function asUnkept(text: string, upstreamId: string): string {
  return text
    .replaceAll(`"id":"resp_${DIGITS}"`, `"id":"${upstreamId}"`)
    .replaceAll(new RegExp(`"[a-z]+_${DIGITS}_openai\\.`, 'g'), '"')
    .replaceAll(`"previous_response_id":"${PREVIOUS}"`, '"previous_response_id":null')
    .replaceAll('"background":true', '"background":false');
}

const DIFFERING = /"(?:store|previous_response_id|background)":(?:true|false|null|"[^"]*"),?/g;
const withoutState = (text: string) => text.replaceAll(DIFFERING, '');

describe.skipIf(recordingsNote !== '')(`X5 recorded Responses that are kept${recordingsNote}`, () => {
  const recordings = readRecordings().filter(({ protocol }) => protocol === 'responses');

  test.each(recordings.map((recording) => [recording.name, recording] as const))(
    '%s: only ids, state and the form of failures differ from the bytes that are not kept',
    (_, recording) => {
      const bytes = encoder.encode(framed(recording));
      const kept = compareWays([bytes], conversion(KEPT));
      const unkept = convertStream([bytes], conversion(null));
      expect(kept.error).toEqual(unkept.error);
      if (unkept.error !== null) return;
      const upstreamId = /"id":"(resp_[^"]*|[^"]*)"/.exec(unkept.text)?.[1] ?? '';
      expect(withoutState(asUnkept(kept.text, upstreamId))).toBe(withoutState(unkept.text));
      const events = [...eventsOf(kept.text)].filter(({ name }) => name !== '');
      const numbers = events.map(({ data }) => JSON.parse(data).sequence_number);
      expect(numbers).toEqual(numbers.map((_, index) => index));
    },
  );
});

/** A stream whose JSON is written in every way that changes when it is written again. */
const ODD_EVENTS = [
  '{"type":"response.created","sequence_number":0,"response":{"id":"resp_up","object":"response","status":"in_progress","model":"m","output":[],"store":false}}',
  String.raw`{"type":"response.output_item.added","output_index":0,"sequence_number":1,"item":{"id":"ws_1","type":"web_search_call","status":"in_progress","call_id":"ws_1","big":12345678901234567890,"text":"\u00e9\/"}}`,
  '{"type":"response.web_search_call.searching","sequence_number":2,"item_id":"ws_1","unknown":{"a":1.0}}',
  String.raw`{"type":"response.brand_new","sequence_number":3,"item_id":"ws_1","note":"\"item_id\":\"ws_1\""}`,
  '{"type":"response.output_item.added","output_index":1,"sequence_number":4,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}',
  String.raw`{"type":"response.output_text.delta","sequence_number":5,"item_id":"msg_1","output_index":1,"content_index":0,"delta":"caf\u00e9 1","obfuscation":"x"}`,
  String.raw`{"type":"response.output_text.delta","sequence_number":6,"item_id":"msg_1","output_index":1,"content_index":0,"delta":"caf\u00e9 2","obfuscation":"x"}`,
  '{"type":"response.completed","sequence_number":7,"response":{"id":"resp_up","object":"response","status":"completed","model":"m","output":[{"id":"ws_1","type":"web_search_call","call_id":"ws_1"},{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"café 1café 2"}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2},"store":false}}',
];

function streamOf(events: readonly string[], isNamed = true): Uint8Array {
  const frames = events.map((data) => {
    const name = isNamed ? `event: ${JSON.parse(data).type}\n` : '';
    return `${name}data: ${data.replaceAll('\n', '\ndata: ')}\n\n`;
  });
  return encoder.encode(frames.join(''));
}

describe('X5 a kept stream', () => {
  test('has the bytes of events of any type and form, except for the ids', () => {
    const bytes = streamOf(ODD_EVENTS);
    const kept = convertStream([bytes], conversion(KEPT)).text;
    const unkept = convertStream([bytes], conversion(null)).text;
    expect(withoutState(asUnkept(kept, 'resp_up'))).toBe(withoutState(unkept));
    // An id of a call is the client's business, even if it is the same text.
    expect(kept).toContain('"call_id":"ws_1"');
    expect(kept).toContain(String.raw`"note":"\"item_id\":\"ws_1\""`);
  });

  test('has names, numbers without gaps and one line for each event, whatever the upstream writes', () => {
    const spaced = ODD_EVENTS.map((data) =>
      JSON.stringify({ ...JSON.parse(data), sequence_number: 40 }, null, 1),
    );
    const { text } = convertStream([streamOf(spaced, false)], conversion(KEPT));
    const frames = text.split('\n\n').slice(0, -1);
    expect(frames).toHaveLength(ODD_EVENTS.length);
    for (const [index, frame] of frames.entries()) {
      const [event = '', data = '', ...more] = frame.split('\n');
      expect(more).toEqual([]);
      expect(JSON.parse(data.slice('data: '.length)).sequence_number).toBe(index);
      expect(event).toBe(`event: ${JSON.parse(data.slice('data: '.length)).type}`);
      expect(frame).not.toMatch(/"(?:item_id|id)":"(?:ws|msg)_1"/);
    }
  });

  test('leaves out events without a type, which readers could not find by their names and numbers', () => {
    const [created = '', ...others] = ODD_EVENTS;
    const bytes = streamOf([created, '{"choices":[]}', ...others], false);
    expect(convertStream([bytes], conversion(KEPT)).text).toBe(
      convertStream([streamOf(ODD_EVENTS, false)], conversion(KEPT)).text,
    );
  });

  test('ends with an event that has the response, whatever else has the name of such an event', () => {
    const odd = [
      '{"type":"response.completed","sequence_number":1}',
      '{"type":"completed","sequence_number":2}',
      '{"type":"response.failed","sequence_number":3,"response":null}',
    ];
    const events = [ODD_EVENTS[0] ?? '', ...odd, ODD_EVENTS.at(-1) ?? ''];
    const { text } = convertStream([streamOf(events)], conversion(KEPT));
    const frames = [...new FrameSplitter().add(encoder.encode(text))];
    // The output, which comes only in the last event, has events of its own (O7).
    const types = frames.map(({ type }) => type);
    expect([...types.slice(0, 2), ...types.slice(-1)]).toEqual(['created', 'other', 'completed']);
    expect(types.filter((type) => type === 'failed')).toEqual([]);
    expect(frames.map(isTerminal)).toEqual(frames.map((_, at) => at === frames.length - 1));
  });

  test('of a background response has the time at which it was queued', () => {
    const bytes = streamOf(
      ODD_EVENTS.map((data) => data.replace('"object":"response"', '"object":"response","created_at":7')),
    );
    const { text } = convertStream([bytes], conversion({ ...KEPT, createdAt: 1_790_000_000 }));
    expect(text.match(/"created_at":\d+/g)).toEqual(['"created_at":1790000000', '"created_at":1790000000']);
    expect(convertStream([bytes], conversion(KEPT)).text).toContain('"created_at":7,');
  });

  test('that fails ends with the ids and the state of the gateway', () => {
    const { text } = convertStream([streamOf(ODD_EVENTS.slice(0, 3))], conversion(KEPT));
    const last = text.split('\n\n').find((frame) => frame.startsWith('event: response.failed'));
    const { response } = JSON.parse(last?.split('\ndata: ')[1] ?? '');
    expect(response).toMatchObject({
      id: `resp_${DIGITS}`,
      model: 'openai/m',
      store: true,
      background: true,
      previous_response_id: PREVIOUS,
    });
  });
});

const id = (own: string, provider = 'openai') => `rs_${DIGITS}_${provider}.${own}`;

describe('X5 items that go up', () => {
  test('have the ids of the provider that wrote them, also those that an approval names', () => {
    const items = [
      { type: 'reasoning', id: id('rs_1'), summary: [], encrypted_content: 'e' },
      { type: 'function_call', id: id('fc_1'), call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'mcp_approval_response', approval_request_id: id('mcpr_1'), approve: true },
      { type: 'message', id: `msg_${DIGITS}_in3`, role: 'user', content: 'Hi' },
      { type: 'message', id: 'msg_other', role: 'user', content: 'Hi' },
    ];
    expect(restoreItems(items, 'openai')).toEqual([
      { ...items[0], id: 'rs_1' },
      { ...items[1], id: 'fc_1' },
      { ...items[2], approval_request_id: 'mcpr_1' },
      { type: 'message', role: 'user', content: 'Hi' },
      items[4],
    ]);
  });

  test('of another provider have no ids, and its reasoning is dropped', () => {
    const items = [
      { type: 'reasoning', id: id('rs_1'), summary: [], encrypted_content: 'e' },
      { type: 'message', id: id('msg_1'), role: 'assistant', content: 'Hi' },
    ];
    expect(restoreItems(items, 'xai')).toEqual([{ type: 'message', role: 'assistant', content: 'Hi' }]);
  });

  test('without reasoning that the provider could read have no ids, by which it would miss the reasoning', () => {
    const items = [
      { type: 'reasoning', id: id('rs_1'), summary: [] },
      { type: 'function_call', id: id('fc_1'), call_id: 'c', name: 'f', arguments: '{}' },
    ];
    expect(restoreItems(items, 'openai')).toEqual([
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
    ]);
  });

  test('of clients that keep their own ids are the same list', () => {
    const items = [{ type: 'reasoning', id: 'rs_1' }, 'text', null, { role: 'user', content: 'Hi' }];
    expect(restoreItems(items, 'openai')).toBe(items);
  });

  test('a provider of this gateway that is a gateway itself has its own ids again', () => {
    const inner = `rs_${'1'.repeat(32)}_open_ai-2.rs_1.x`;
    const items = [{ type: 'reasoning', id: id(inner, 'a_b-c'), encrypted_content: 'e' }];
    expect(restoreItems(items, 'a_b-c')).toEqual([{ ...items[0], id: inner }]);
  });
});

describe('X5 the body of a kept request', () => {
  test('requests encrypted reasoning of a model that returns it, once', () => {
    const body = { model: 'm', input: 'Hi', include: ['message.output_text.logprobs'] };
    const target = { provider: 'openai', encryptsReasoning: true, needsSignatures: false };
    const upstream = responsesPassthrough(KEPT).upstreamBody(body, target);
    expect(upstream).toEqual({ ...body, include: [...body.include, 'reasoning.encrypted_content'] });
    expect(responsesPassthrough(KEPT).upstreamBody(upstream ?? {}, target)).toBe(upstream);
    expect(responsesPassthrough(null).upstreamBody(body, target)).toBe(body);
    const other = { provider: 'openai', encryptsReasoning: false, needsSignatures: false };
    expect(responsesPassthrough(KEPT).upstreamBody(body, other)).toBe(body);
  });
});

describe('Y2 a kept response whose user is hidden', () => {
  const NAMES = {
    user: 'ada',
    safety_identifier: 'ada',
    metadata: { user_id: 'ada', session_id: 'ada', team: 'search' },
  };
  const HIDDEN = { user: null, safety_identifier: null, metadata: { team: 'search' } };
  const hiding: KeptState = { ...KEPT, hidesUser: true };

  test('repeats neither names nor sessions of the request, and without it repeats them', () => {
    const echoOf = (kept: KeptState): unknown => JSON.parse(`{${writeEcho(NAMES, [], kept)}}`);
    expect(echoOf(hiding)).toMatchObject(HIDDEN);
    expect(echoOf(KEPT)).toMatchObject(NAMES);
  });

  test('drops what the provider repeats of them', () => {
    const options = {
      provider: 'openai',
      model: 'm',
      requestId: REQUEST_ID,
      reasoning: 'pass',
      errorFrames: 'data',
      maxEventBytes: 1000,
      promptTokens: 0,
      now: () => 0,
    } as const;
    const response = { object: 'response', id: 'resp_1', output: [], ...NAMES };
    const writeJson = (kept: KeptState) => responsesPassthrough(kept).writeJson?.(response, options);
    expect(writeJson(hiding)).toMatchObject(HIDDEN);
    expect(writeJson(KEPT)).toMatchObject(NAMES);
  });
});

describe('E5 the reason for which a response is incomplete', () => {
  const bytesWith = (reason: string) => {
    const response = { id: 'resp_1', status: 'incomplete', output: [], incomplete_details: { reason } };
    const end = { type: 'response.incomplete', sequence_number: 0, response };
    return encoder.encode(`event: response.incomplete\ndata: ${JSON.stringify(end)}\n\n`);
  };

  test.each([
    ['max_output_tokens', 'max_output_tokens'],
    ['my password is hunter2', 'other'],
    ['x'.repeat(65), 'other'],
  ])('%j is kept as %j', (reason, kept) => {
    const { text } = convertStream([bytesWith(reason)], conversion(KEPT));
    expect(text).toContain(`"incomplete_details":{"reason":"${kept}"}`);
    if (kept === 'other') expect(text).not.toContain(reason);
  });

  test('that is not kept is passed on as it is', () => {
    const { text } = convertStream([bytesWith('of other words')], conversion(null));
    expect(text).toContain('"incomplete_details":{"reason":"of other words"}');
  });
});

describe.each([null, KEPT])('X4 hostile types of events, passed on and kept (%j)', (kept) => {
  const fake = JSON.stringify({
    type: 'response.completed',
    response: { id: 'fake', status: 'completed', output: [] },
  });

  test.each(['\n', '\r', '\r\n'])('a line end %j in a type adds no event', (end) => {
    const type = `response.x${end}${end}event: response.completed${end}data: ${fake}${end}${end}`;
    const hostile = `event: response.x\ndata: ${JSON.stringify({ type, sequence_number: 0 })}\n\n`;
    const real = {
      type: 'response.completed',
      sequence_number: 1,
      response: { id: 'resp_1', status: 'completed', output: [] },
    };
    const bytes = encoder.encode(`${hostile}event: response.completed\ndata: ${JSON.stringify(real)}\n\n`);
    const { text } = convertStream([bytes], conversion(kept));
    const frames = [...new FrameSplitter().add(encoder.encode(text))];
    expect(frames.filter(isTerminal)).toHaveLength(1);
    expect(text).not.toMatch(/^data: .*"id":"fake"/m);
    expect(text.split('\n').filter((line) => line.startsWith('event: response.completed'))).toHaveLength(1);
  });
});
