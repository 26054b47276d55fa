/**
 * Recorded requests of real Gemini clients with their recorded answers: passed through to Gemini byte for byte, and
 * read for other providers.
 */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { answerWith, type Behavior, RoutedGateway } from './upstreams.ts';

const FOLDER = fileURLToPath(new URL('../../../shared/requests/', import.meta.url).href);
const note = existsSync(FOLDER) ? '' : ' (skipped: ../shared/requests is not here)';

interface Recording {
  readonly name: string;
  /** Of the endpoint. */
  readonly path: string;
  readonly request: JsonObject;
  readonly answer: string;
}

function read(file: string): string {
  return readFileSync(FOLDER + file, 'utf8');
}

const RECORDINGS: readonly Recording[] = note
  ? []
  : read('INDEX.md')
      .split('\n')
      .flatMap((line) => {
        const [, file = '', , endpoint = ''] = line.split('|').map((cell) => cell.trim());
        const name = /^gemini\/(.+)\.(?:json|sse|jsonl)$/.exec(file)?.[1];
        const path = /^POST (\S+:\w*enerateContent\S*)$/.exec(endpoint)?.[1];
        const request = `gemini/${name}.request.json`;
        if (name === undefined || path === undefined || !existsSync(FOLDER + request)) return [];
        const filled = path.replace('{p}', 'p').replace('{l}', 'us-central1');
        return [{ name, path: filled, request: decodeObject(read(request)) ?? {}, answer: read(file) }];
      });

const ENV = { GEMINI_API_KEY: 'key-of-gemini', GEMINI_BASE_URL: 'https://gemini' };

/** The elements of a recorded stream, as their JSON texts; null: it is one response. */
function elementsOf({ path, answer }: Recording): string[] | null {
  if (!path.includes(':streamGenerateContent')) return null;
  if (answer.startsWith('[')) return (JSON.parse(answer) as object[]).map((one) => JSON.stringify(one));
  return answer.split(/\r?\n/).flatMap((line) => {
    const json = line.replace(/^data: ?/, '').trim();
    return json === '' ? [] : [json];
  });
}

/** Gemini, which answers with the recording. */
function geminiOf(recording: Recording): Behavior {
  const elements = elementsOf(recording);
  if (elements === null) return { kind: 'answer', type: 'application/json', pieces: [recording.answer] };
  return {
    kind: 'answer',
    type: 'text/event-stream',
    pieces: elements.map((json) => `data: ${json}\r\n\r\n`),
  };
}

/** Every text, call and finish of the elements. */
function meaningOf(elements: readonly JsonObject[]): unknown {
  const candidates = elements.flatMap((one) => objectsOf(one.candidates));
  const parts = candidates.flatMap(({ content }) => objectsOf(objectOf(content).parts));
  return {
    text: parts.map(({ text, thought }) => (thought === true ? '' : textOf(text))).join(''),
    calls: parts.flatMap(({ functionCall }) => (functionCall === undefined ? [] : [functionCall])),
    finish: candidates.flatMap(({ finishReason }) => finishReason ?? []),
  };
}

describe.skipIf(note !== '')(`recorded requests of Gemini's clients${note}`, () => {
  test('there are some', () => expect(RECORDINGS.length).toBeGreaterThan(30));

  test.each(RECORDINGS)(
    '$name: Gemini gets the request, and the client the answer, unchanged',
    async (recording) => {
      const { path, request, answer } = recording;
      const gateway = new RoutedGateway(
        { '': [geminiOf(recording)], [textOf(request.model)]: [geminiOf(recording)] },
        ENV,
      );
      const response = await gateway.gateway.post(path, 'x', request);
      const text = await response.text();
      const sent = gateway.requests[0];
      expect(sent?.body).toEqual(request);
      const [model] = /[^/]+(?=:\w+)/.exec(path) ?? [];
      const isStreamed = path.includes(':stream');
      expect(sent?.url).toBe(
        `https://gemini/v1beta/models/${model}${isStreamed ? ':streamGenerateContent?alt=sse' : ':generateContent'}`,
      );
      if (!isStreamed) expect(text).toBe(answer);
      else if (path.includes('alt=sse')) {
        expect(text).toBe(
          elementsOf(recording)
            ?.map((json) => `data: ${json}\r\n\r\n`)
            .join(''),
        );
      } else
        expect(JSON.parse(text)).toEqual(elementsOf(recording)?.map((json) => JSON.parse(json) as object));
      const elements = isStreamed ? (elementsOf(recording) ?? []) : [answer];
      const usage = elements
        .map((json) => objectOf(decodeObject(json)?.usageMetadata))
        .findLast((one) => one.promptTokenCount);
      expect(gateway.records).toMatchObject([
        {
          client: 'gemini',
          status: 'finished',
          provider: 'gemini',
          prompt_tokens: Number(usage?.promptTokenCount) + Number(usage?.toolUsePromptTokenCount ?? 0),
        },
      ]);
    },
  );

  test.each(RECORDINGS)(
    '$name: a chat provider gets its texts, tools and results',
    async ({ name, path, request }) => {
      const gateway = new RoutedGateway({ a: [answerWith('Hi')] });
      const other = path.replace(/^.*(?=:\w+)/, '/v1beta/models/openai/a');
      const response = await gateway.gateway.post(other, 'x', request);
      const text = await response.text();
      if (/google-search|mcp-server|cached/.test(name)) {
        expect(response.status).toBe(400);
        expect(decodeObject(text)).toMatchObject({ error: { status: 'INVALID_ARGUMENT' } });
        return;
      }
      expect(response.status, text).toBe(200);
      const sent = JSON.stringify(gateway.requests[0]?.body);
      for (const content of objectsOf(request.contents)) {
        for (const part of objectsOf(content.parts)) {
          if (typeof part.text === 'string') expect(sent).toContain(JSON.stringify(part.text).slice(1, -1));
          const called = objectOf(part.functionCall ?? part.function_call);
          if (called.name !== undefined) expect(sent).toContain(`"name":${JSON.stringify(called.name)}`);
        }
      }
      expect(sent).not.toMatch(/"(?:STRING|OBJECT|INTEGER|NUMBER)"|"type":\d/);
    },
  );

  const LONG = RECORDINGS.filter(({ request }) => objectsOf(request.contents).length > 2);

  test.each(LONG)(
    '$name: one turn longer, a conversation begins with the same bytes',
    async ({ request }) => {
      const contents = objectsOf(request.contents);
      const ends = contents.flatMap(({ role }, at) =>
        role !== 'model' && at < contents.length - 1 ? [at + 1] : [],
      );
      for (const model of ['openai/a', 'openai/gpt-6.1-terra', 'mistral/a']) {
        const sent = async (count: number) => {
          const gateway = new RoutedGateway({});
          const body = { ...request, tools: [{ functionDeclarations: [{ name: 'f' }] }] };
          const path = `/v1beta/models/${model}:generateContent`;
          await gateway.gateway.post(path, 'x', { ...body, contents: contents.slice(0, count) });
          const { messages, input } = gateway.requests[0]?.body ?? {};
          return JSON.stringify(messages ?? input);
        };
        const whole = await sent(contents.length);
        expect(whole).toContain('{');
        for (const end of ends) expect(whole).toContain((await sent(end)).replace(/\]$/, ','));
      }
    },
  );

  test.each(RECORDINGS)('$name: a translated answer of Gemini means the same', async (recording) => {
    const { path, request, answer, name } = recording;
    if (/google-search|mcp-server|cached/.test(name)) return;
    const aliases = { ALIASES: JSON.stringify({ own: { model: 'gemini/m', set: { seed: 1 } } }) };
    const gateway = new RoutedGateway({ '': [geminiOf(recording)] }, { ...ENV, ...aliases });
    const response = await gateway.gateway.post(
      path.replace(/^.*(?=:\w+)/, '/v1beta/models/own'),
      'x',
      request,
    );
    const text = await response.text();
    expect(response.status, text).toBe(200);
    const given = elementsOf(recording) ?? [answer];
    const got = path.includes('alt=sse')
      ? text.split('\r\n\r\n').map((one) => decodeObject(one.replace(/^data: /, '')) ?? {})
      : path.includes(':stream')
        ? (JSON.parse(text) as JsonObject[])
        : [decodeObject(text) ?? {}];
    const expected = meaningOf(given.map((json) => decodeObject(json) ?? {})) as {
      calls: JsonObject[];
      finish: unknown[];
    };
    expect(meaningOf(got)).toMatchObject({
      ...expected,
      calls: expected.calls.map(({ name: called, args = {} }) => ({ name: called, args })),
      finish: expected.finish.slice(-1),
    });
  });
});
