/** The requests whose bodies are compared: recorded ones, refused ones, and a seeded sample, in the form of each client protocol. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROFILES, PROVIDERS } from '../../src/providers/index.ts';
import { seeded } from '../../test/random.ts';
import { decodeObject, isObject, type JsonObject } from '../simulator/json.ts';
import { REFUSAL_TEXTS } from '../simulator/refusal-texts.ts';
import { chatRequest, messagesRequest, pick, responsesRequest } from './sample.ts';

/** One request of a client, and what the upstream does with what arrives there. */
export interface BodiesCase {
  readonly name: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: JsonObject;
  /** The upstream refuses the first calls with these. Those that follow succeed. */
  readonly refusals: readonly { readonly status: number; readonly text: string }[];
  /** `max_output_tokens` of the caller's gateway key; null: it has no limits. */
  readonly maxOutput: number | null;
}

const SHARED = join(import.meta.dirname, '../../../shared');
const CHAT = '/v1/chat/completions';
const MESSAGES = '/v1/messages';
const RESPONSES = '/v1/responses';

/** A model that no table knows. */
const UNKNOWN = 'unknown-1';

/** Random requests at each model, for each client protocol. */
const SAMPLES = 6;

/** Providers at which each refusal is played. Which ones depends on the seed. */
const REFUSING_PROVIDERS = 4;

/** @param folder `requests` or `streams`; empty if the recordings are not beside this checkout */
function recordedIn(folder: string): readonly { readonly name: string; readonly body: JsonObject }[] {
  const path = join(SHARED, folder);
  if (!existsSync(path)) return [];
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' }).filter((name) =>
    (folder === 'streams' ? /\.request\.json$/ : /\.json$/).test(name),
  );
  return names.sort().flatMap((name) => {
    const json = decodeObject(readFileSync(join(path, name), 'utf8'));
    if (json === undefined) return [];
    const body = isObject(json.request) ? json.request : json;
    return [{ name: `${folder}/${name}`, body }];
  });
}

/** The addresses of one model of each row of the tables, and of one that no row matches, at each provider and profile. */
export function addressesOfFamilies(): readonly string[] {
  const sources = join(import.meta.dirname, '../../src/providers');
  const ids = new Set([...PROVIDERS, ...PROFILES].map(({ id }) => id));
  return [...ids].flatMap((id) => {
    const path = join(sources, `${id.replace(/-.*/, '')}.ts`);
    const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
    const globs = [...text.matchAll(/\bmodels: \[([^\]]*)\]/g)].flatMap(([, list = '']) => {
      const [, first] = /'([^']+)'/.exec(list) ?? [];
      return first === undefined ? [] : [first.replaceAll('*', '') || UNKNOWN];
    });
    return [...new Set([...globs, UNKNOWN])].map((model) => `${id}/${model}`);
  });
}

function pathOf(body: JsonObject): string {
  if (body.input !== undefined && body.messages === undefined) return RESPONSES;
  return body.system !== undefined || (body.max_tokens !== undefined && hasBlocks(body)) ? MESSAGES : CHAT;
}

/** Content of Messages has blocks that a chat has not. */
function hasBlocks({ messages, tools }: JsonObject): boolean {
  return /"type":"(?:tool_use|tool_result|thinking|redacted_thinking)"|"input_schema"|"type":"\w+_20\d{6}"/.test(
    JSON.stringify([messages, tools]),
  );
}

/** @returns the cases, and whether those of `../shared` are among them */
export function makeCases(seed: number): {
  readonly cases: readonly BodiesCase[];
  readonly hasRecordings: boolean;
} {
  const addresses = addressesOfFamilies();
  const plain = { headers: {}, refusals: [], maxOutput: null };
  const recorded = [...recordedIn('requests'), ...recordedIn('streams')].flatMap(({ name, body }) =>
    addresses.map(
      (model): BodiesCase => ({
        ...plain,
        name: `${name} at ${model}`,
        path: pathOf(body),
        body: { ...body, model },
      }),
    ),
  );
  const random = seeded(seed);
  const ways = [
    [CHAT, chatRequest],
    [MESSAGES, messagesRequest],
    [RESPONSES, responsesRequest],
  ] as const;
  const sampled = addresses.flatMap((model) =>
    ways.flatMap(([path, make]) =>
      Array.from({ length: SAMPLES }, (_, i): BodiesCase => {
        const mode = ['auto', 'drop', 'refuse'][Math.floor(random() * 5)];
        return {
          ...plain,
          name: `sample ${i} for ${path} at ${model}`,
          path,
          headers: mode === undefined ? {} : { 'x-weir-unsupported': mode },
          body: { ...make(random), model },
          maxOutput: random() < 0.3 ? 100 + Math.floor(random() * 4000) : null,
        };
      }),
    ),
  );
  const unknown = addresses.filter((model) => model.endsWith(UNKNOWN));
  const refused = REFUSAL_TEXTS.flatMap(({ name, status = 400, text, sent }) =>
    Array.from({ length: REFUSING_PROVIDERS }, () => pick(random, unknown)).flatMap((model) =>
      ways.map(([path, make]): BodiesCase => {
        const isChat = path === CHAT;
        const own = isChat ? { messages: [{ role: 'user', content: 'Hello' }] } : make(random);
        return {
          ...plain,
          name: `refused ${name} for ${path} at ${model}`,
          path,
          body: { ...own, ...(isChat || random() < 0.5 ? sent : {}), model, stream: false },
          refusals: [{ status, text }],
        };
      }),
    ),
  );
  return { cases: [...recorded, ...sampled, ...refused], hasRecordings: recorded.length > 0 };
}
