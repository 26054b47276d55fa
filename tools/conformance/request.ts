/** The requests of the suite: one short conversation in each client protocol, with the name of the case in its text. */
import type { Case, Client } from './case.ts';
import type { JsonObject } from './contract/json.ts';

const CITY: JsonObject = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
};
const FUNCTIONS: readonly JsonObject[] = [
  { name: 'get_weather', description: 'The weather in a city', parameters: CITY },
  { name: 'get_time', description: 'The time in a city', parameters: CITY },
];

const MAX_TOKENS = 512;

const PATHS: Readonly<Record<Exclude<Client, 'gemini'>, string>> = {
  chat: '/chat/completions',
  messages: '/messages',
  responses: '/responses',
};

/** Below the gateway's base URL. Gemini's clients have the model in it. */
export function pathOf({ client, request }: Case, model: string): string {
  if (client !== 'gemini') return PATHS[client];
  const method = request?.isStreamed === false ? 'generateContent' : 'streamGenerateContent?alt=sse';
  return `/models/${model}:${method}`;
}

/** The mark by which the upstream recognizes the case of a request, whichever way the gateway rewrites it. */
function markOf(playId: string): string {
  return `conformance-case:${playId}:`;
}

const MARK = /conformance-case:([\w/.-]+):/;

/** Null: the request is none of the suite's. */
export function playIdIn(body: string): string | null {
  return MARK.exec(body)?.[1] ?? null;
}

export function requestOf(one: Case, playId: string, model: string): JsonObject {
  const { hasTools = false, choices, isStreamed = true, asksUsage = true } = one.request ?? {};
  const text = `Say a few words. (${markOf(playId)})`;
  const messages = [{ role: 'user', content: text }];
  if (one.client === 'chat') {
    return {
      model,
      messages,
      stream: isStreamed,
      ...(isStreamed && asksUsage ? { stream_options: { include_usage: true } } : {}),
      ...(choices === undefined ? {} : { n: choices }),
      ...(hasTools ? { tools: FUNCTIONS.map((fn) => ({ type: 'function', function: fn })) } : {}),
    };
  }
  if (one.client === 'gemini') {
    const functionDeclarations = FUNCTIONS.map(({ parameters, ...fn }) => ({
      ...fn,
      parametersJsonSchema: parameters ?? null,
    }));
    return {
      contents: [{ role: 'user', parts: [{ text }] }],
      generationConfig: { thinkingConfig: { includeThoughts: true } },
      ...(hasTools ? { tools: [{ functionDeclarations }] } : {}),
    };
  }
  if (one.client === 'messages') {
    const tools = FUNCTIONS.map(({ parameters, ...fn }) => ({ ...fn, input_schema: parameters ?? null }));
    return { model, max_tokens: MAX_TOKENS, messages, stream: isStreamed, ...(hasTools ? { tools } : {}) };
  }
  const tools = FUNCTIONS.map((fn) => ({ type: 'function', strict: false, ...fn }));
  return { model, input: messages, stream: isStreamed, store: false, ...(hasTools ? { tools } : {}) };
}
