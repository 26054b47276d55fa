/** Recorded answers of clouds, through the whole gateway and the official SDKs of all client protocols, streamed and whole. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { framed, readRecordings } from '../contract/recordings.ts';
import { CLIENTS, gatewayFetch } from './sdk-clients.ts';
import { type Behavior, json, sse } from './upstreams.ts';

const FOLDER = join(import.meta.dirname, '..', '..', '..', 'shared', 'streams');
const note = existsSync(FOLDER) ? '' : ' (skipped: ../shared/streams is not here)';

const CLOUDS: Readonly<Record<string, { readonly env: JsonObject }>> = {
  'azure-openai': { env: { AZURE_API_KEY: 'k', AZURE_RESOURCE: 'acme' } },
  'azure-ai': { env: { AZURE_API_KEY: 'k', AZURE_RESOURCE: 'acme' } },
  'bedrock-mantle': { env: { AWS_BEARER_TOKEN_BEDROCK: 'k', AWS_REGION: 'us-east-1' } },
};

interface Recorded {
  readonly name: string;
  readonly provider: string;
  readonly text: string;
  /** The recorded stream's events, or the one object. */
  readonly events: readonly JsonObject[];
  readonly isStream: boolean;
}

function cloudOf(name: string): string | undefined {
  return Object.keys(CLOUDS).find((one) => name.startsWith(`${one}--`));
}

function recordedAs(name: string, text: string, isStream: boolean): Recorded[] {
  const provider = cloudOf(name);
  if (provider === undefined) return [];
  const datas = isStream ? [...text.matchAll(/^data: ?(.*)$/gm)].map(([, data = '']) => data) : [text];
  return [{ name, provider, text, isStream, events: datas.map((data) => decodeObject(data) ?? {}) }];
}

function recorded(): Recorded[] {
  if (note !== '') return [];
  const own = readRecordings().flatMap((one) => recordedAs(one.name, framed(one), true));
  const others = ['bedrock', 'whole', 'other'].flatMap((folder) => {
    const path = join(FOLDER, folder);
    if (!existsSync(path)) return [];
    return readdirSync(path).flatMap((name) => {
      const isStream = name.endsWith('.sse');
      if (/\.request\.json$|--models\.json$/.test(name) || !(isStream || name.endsWith('.json'))) return [];
      return recordedAs(name, readFileSync(join(path, name), 'utf8'), isStream);
    });
  });
  return [...own, ...others];
}

/** What the recording holds: read from the final form of each item, or from the pieces of chat. */
function contentOf({ events }: Recorded) {
  const last = events.at(-1) ?? {};
  const items = objectsOf(last.output ?? objectOf(last.response).output);
  if (items.length > 0) {
    const parts = (type: string) =>
      items
        .flatMap((item) => [...objectsOf(item.content), ...objectsOf(item.summary)])
        .filter((part) => part.type === type);
    return {
      isResponses: true,
      text: parts('output_text')
        .map(({ text }) => textOf(text))
        .join(''),
      calls: items
        .filter(({ type }) => type === 'function_call')
        .map(({ name, arguments: args }) => [textOf(name), textOf(args)]),
    };
  }
  const choices = events.flatMap(({ choices }) => objectsOf(choices));
  const calls: [string, string][] = [];
  for (const call of choices.flatMap(({ delta, message }) =>
    objectsOf(objectOf(delta ?? message).tool_calls),
  )) {
    const { name, arguments: args } = objectOf(call.function);
    if (typeof name === 'string' && name !== '') calls.push([name, '']);
    const at = calls.at(-1);
    if (at !== undefined) at[1] += textOf(args);
  }
  return {
    isResponses: false,
    text: choices.map(({ delta, message }) => textOf(objectOf(delta ?? message).content)).join(''),
    calls,
  };
}

function modelOf({ events }: Recorded): string {
  const names = events.map(({ model, response }) => textOf(model ?? objectOf(response).model));
  return names.find((name) => name !== '') ?? 'm';
}

describe.skipIf(note !== '')(`recorded answers of clouds${note}`, () => {
  const all = recorded();

  test('there are recordings of each cloud', () => {
    for (const cloud of Object.keys(CLOUDS))
      expect(all.filter(({ provider }) => provider === cloud)).not.toEqual([]);
  });

  describe.each(all.map((one) => [one.name, one] as const))('%s', (_, one) => {
    const { isResponses, ...content } = contentOf(one);
    const model = modelOf(one);
    const provider = one.provider.split('-')[0];
    const behavior: Behavior = one.isStream ? sse(one.text) : json(one.events[0] ?? {});
    // Fields that an alias sets need translation: the recording of chat is no answer at `/responses`.
    const alias = {
      model: `${provider}/${model}`,
      ...(isResponses ? { api: 'responses' } : { set: { user: 'u' } }),
    };
    const env = { ...CLOUDS[one.provider]?.env, ALIASES: { recorded: alias } };

    test.each(Object.keys(CLIENTS))('%s: what the SDK reads is what was recorded', async (client) => {
      const read = CLIENTS[client];
      const seen = await read?.(gatewayFetch(behavior, { env, model }), 'recorded');
      expect({ text: seen?.text, calls: seen?.calls }).toEqual(content);
    });
  });
});
