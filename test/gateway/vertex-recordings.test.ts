/**
 * Recorded responses of Vertex AI, Gemini's and Claude's, through the provider `vertex` with a service account and
 * every client protocol (W13).
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { FakeGoogle, SERVICE_ACCOUNT } from '../credentials/fake-google.ts';
import { FakeClock } from '../stream/fake-clock.ts';
import { LimitedGateway } from './limited-gateway.ts';
import { CLIENTS } from './sdk-clients.ts';
import { settle } from './upstreams.ts';

const SHARED = join(import.meta.dirname, '..', '..', '..', 'shared');
const note = existsSync(SHARED) ? '' : ' (skipped: ../shared is not here)';

interface Recorded {
  readonly name: string;
  readonly status: number;
  readonly type: string;
  readonly text: string;
  readonly isClaude: boolean;
  readonly events: readonly JsonObject[];
}

/** A stream that was recorded as one JSON object a line is framed again. */
function streams(folder: string): Recorded[] {
  return readdirSync(folder)
    .filter((name) => /^(?:gemini|anthropic)--vertex.*\.(?:sse|jsonl)$/.test(name))
    .map((name) => {
      const text = readFileSync(join(folder, name), 'utf8');
      const framed = name.endsWith('.sse') ? text : text.replace(/^(?=\{)/gm, 'data: ').replace(/$/gm, '\n');
      const events = [...framed.matchAll(/^data: ?(.*)$/gm)].map(([, data = '']) => decodeObject(data) ?? {});
      const isClaude = name.startsWith('anthropic');
      return { name, status: 200, type: 'text/event-stream', text: framed, isClaude, events };
    });
}

/** Whole responses. What was recorded of other methods is no response of a chat. */
function responses(folder: string): Recorded[] {
  return readdirSync(folder)
    .filter((name) => /^vertex--.*\.json$/.test(name) && !name.includes('-tokens'))
    .map((name) => {
      const { status, response } = decodeObject(readFileSync(join(folder, name), 'utf8')) ?? {};
      const object = objectOf(response);
      return {
        ...{ name, status: Number(status), type: 'application/json', text: JSON.stringify(object) },
        ...{ isClaude: name.includes('claude'), events: [object] },
      };
    });
}

const RECORDED: readonly Recorded[] =
  note === ''
    ? [
        ...streams(join(SHARED, 'streams')),
        ...streams(join(SHARED, 'streams', 'other')),
        ...responses(join(SHARED, 'requests', 'clouds')),
      ]
    : [];

/** Writes a piece of a string at a path such as `$.recipe.steps[9]`. */
function addPiece(args: Record<string, unknown>, path: string, piece: unknown): void {
  const steps = [...path.matchAll(/\.([^.[]+)|\[(\d+)\]/g)].map(([, key, index]) => key ?? Number(index));
  let at = args as Record<string | number, unknown>;
  for (const [place, step] of steps.slice(0, -1).entries()) {
    at[step] ??= typeof steps[place + 1] === 'number' ? [] : {};
    at = at[step] as Record<string | number, unknown>;
  }
  const last = steps.at(-1) ?? '';
  at[last] = typeof piece === 'string' ? `${(at[last] as string | undefined) ?? ''}${piece}` : piece;
}

interface Meaning {
  text: string;
  reasoning: string;
  calls: [string, JsonObject][];
}

/** What a Gemini response holds, by Google's documents. */
function meaningOfGemini(events: readonly JsonObject[]): Meaning {
  const meaning: Meaning = { text: '', reasoning: '', calls: [] };
  const parts = events
    .flatMap(({ candidates }) => objectsOf(candidates))
    .flatMap(({ content }) => objectsOf(objectOf(content).parts));
  for (const part of parts) {
    meaning[part.thought === true ? 'reasoning' : 'text'] += textOf(part.text);
    const { name, args, partialArgs } = objectOf(part.functionCall);
    if (typeof name === 'string') meaning.calls.push([name, { ...objectOf(args) }]);
    for (const { jsonPath, stringValue, numberValue, boolValue } of objectsOf(partialArgs))
      addPiece(
        meaning.calls.at(-1)?.[1] ?? {},
        textOf(jsonPath),
        stringValue ?? numberValue ?? boolValue ?? null,
      );
  }
  return meaning;
}

/** What a message of Claude's holds. */
function meaningOfClaude(events: readonly JsonObject[]): Meaning {
  const meaning: Meaning = { text: '', reasoning: '', calls: [] };
  const inputs: string[] = [];
  for (const { content, content_block, delta } of events) {
    for (const { type, text, name, input } of [...objectsOf(content), objectOf(content_block)]) {
      meaning.text += textOf(text);
      if (type === 'tool_use') inputs.push('') && meaning.calls.push([textOf(name), objectOf(input)]);
    }
    meaning.text += textOf(objectOf(delta).text);
    const piece = textOf(objectOf(delta).partial_json);
    if (piece !== '') inputs.push(`${inputs.pop() ?? ''}${piece}`);
  }
  inputs.forEach((json, at) => {
    const call = meaning.calls[at];
    if (json !== '' && call !== undefined) call[1] = decodeObject(json) ?? {};
  });
  return meaning;
}

/** The last report of the prompt's tokens; undefined: there is none. */
function promptTokensOf(events: readonly JsonObject[]): unknown {
  const usages = events.flatMap(({ usageMetadata, usage, message }) => [
    usageMetadata,
    objectOf(message).usage,
    usage,
  ]);
  return usages
    .map((usage) => objectOf(usage).promptTokenCount ?? objectOf(usage).input_tokens)
    .findLast(Boolean);
}

const ENV = {
  ...{
    AUTH: 'open',
    RETRIES: '0',
    HEARTBEAT_SECONDS: '0',
    ERROR_TEXTS: 'on',
    VERTEX_LOCATION: 'us-central1',
  },
  GOOGLE_SERVICE_ACCOUNT: JSON.stringify(SERVICE_ACCOUNT),
  ALIASES: {
    // A field that is set needs a translation, also for the clients whose protocol the model has.
    'gemini-set': { model: 'vertex/gemini-2.5-flash', set: { seed: 1 } },
    'claude-set': { model: 'vertex/claude-haiku-4-5@20251001', set: { user: 'u' } },
  },
};

function gatewayOf({ status, type, text }: Recorded) {
  const clock = new FakeClock();
  const google = new FakeGoogle(
    () => clock.now(),
    () => new Response(text, { status, headers: { 'content-type': type } }),
  );
  const gateway = new LimitedGateway(ENV, { fetch: google.fetch, clock });
  const fetch = (url: string | URL | Request, init?: RequestInit) => {
    const { pathname, search } = new URL(url instanceof Request ? url.url : url);
    return gateway.fetch(pathname + search, '', { ...init, signal: null });
  };
  const record = () => gateway.logged.findLast(({ event }) => event === 'request') ?? {};
  return { google, fetch, record };
}

const FAILS = /error-mid-stream|refused/;
const BLOCKED = /finish-safety|recitation|blocked/;

describe.skipIf(note !== '')(`W13 recordings of Vertex AI${note}`, () => {
  test('there are those of Gemini and of Claude, streamed and whole', () => {
    for (const isClaude of [true, false])
      for (const type of ['text/event-stream', 'application/json'])
        expect(RECORDED.some((one) => one.isClaude === isClaude && one.type === type)).toBe(true);
  });

  describe.each(RECORDED.map((one) => [one.name, one] as const))('%s', (name, recorded) => {
    const { isClaude, events } = recorded;
    const { text, reasoning, calls } = (isClaude ? meaningOfClaude : meaningOfGemini)(events);
    const tokens = promptTokensOf(events);
    const own = isClaude ? 'vertex/claude-haiku-4-5@20251001' : 'vertex/gemini-2.5-flash';
    // Its own clients get the response as it is, and translated where a field is set.
    const isOwn = (client: string) => client.startsWith(isClaude ? 'Messages' : 'Gemini');

    test.each(Object.keys(CLIENTS))('%s: what the SDK reads is what was recorded', async (client) => {
      for (const model of isOwn(client) ? [own, isClaude ? 'claude-set' : 'gemini-set'] : [own]) {
        const { google, fetch, record } = gatewayOf(recorded);
        const seen = CLIENTS[client]?.(fetch, model);
        if (FAILS.test(name)) {
          await expect(seen, model).rejects.toThrow();
        } else {
          // A Gemini client that asks for pieces of arguments gets them as they are.
          const hasPieces =
            name.includes('partial-args') && client.startsWith('Gemini') && model.startsWith('vertex/');
          const read = await seen;
          expect(
            { ...read, calls: read?.calls.map(([called, json]) => [called, decodeObject(json)]) },
            model,
          ).toMatchObject({
            text,
            ...(client === 'chat' || client.startsWith('Gemini') ? { reasoning } : {}),
            ...(hasPieces ? {} : { calls }),
          });
          // Gemini's own responses to a blocked prompt have no candidate.
          const hasFinish = !(client.startsWith('Gemini') && name.includes('blocked'));
          if (BLOCKED.test(name) && hasFinish)
            expect(read?.finish).toMatch(/filter|refusal|SAFETY|RECITATION|PROHIBITED/);
        }
        expect(google.requests).toHaveLength(1);
        expect(google.requests[0]?.headers.get('authorization')).toMatch(/^Bearer ya29\./);
        await settle();
        expect(record(), model).toMatchObject({
          ...{ provider: 'vertex', status: FAILS.test(name) ? 'failed' : 'finished' },
          ...(tokens === undefined || FAILS.test(name) ? {} : { prompt_tokens: tokens }),
        });
      }
    });
  });
});
