/**
 * Prompt caches keep prefixes: a conversation that is one step longer must have the same tools and system text, and begin with the same
 * turns, byte for byte (Q16). Each client protocol at each provider protocol, in random conversations and recorded ones.
 */
import { describe, expect, test } from 'vitest';
import type { CanonicalRequest } from '../../src/canonical/conversation.ts';
import { messages } from '../../src/protocols/anthropic-messages/client.ts';
import { readResponsesRequest } from '../../src/protocols/openai-responses/client-request.ts';
import { encodeReasoningState, encodeReasoningStates } from '../../src/protocols/shared/reasoning-state.ts';
import { isObject, type JsonObject, objectOf, omit, readArray } from '../../src/shared/json.ts';
import { seeded } from '../random.ts';
import { SEED } from '../random-run.ts';
import { readRecordedRequests, requestsNote } from './recorded-requests.ts';
import { providerNamed } from './send.ts';
import { writeRequest } from './write-request.ts';

const RUNS = Number(process.env.RUNS ?? 40);

type Client = 'chat' | 'messages' | 'responses';

/** A request and the places at which a client would have sent what came before: each ends with what the client says. */
interface Conversation {
  readonly body: JsonObject;
  /** The field with the list that grows. */
  readonly list: 'messages' | 'input';
  readonly cuts: readonly number[];
}

/** The providers, each with models that differ in what they take. */
const TARGETS = {
  gemini: [
    ['gemini', 'gemini-3.8-flash'],
    ['gemini', 'gemini-2.0-flash'],
  ],
  messages: [
    ['anthropic', 'claude-opus-5-5'],
    ['anthropic', 'claude-sonnet-4-5'],
  ],
  responses: [['openai', 'gpt-6']],
  chat: [
    ['deepseek', 'deepseek-chat'],
    ['mistral', 'mistral-large-latest'],
    ['like openrouter', 'anthropic/claude-sonnet-4.5'],
    ['like openrouter', 'google/gemini-3-pro'],
    ['like groq', 'openai/gpt-oss-120b'],
    ['like moonshot', 'kimi-k3'],
    ['like zai', 'glm-5.3'],
    ['like vllm', 'qwen3'],
  ],
} as const;
type Protocol = keyof typeof TARGETS;

function sentBody(
  client: Client,
  protocol: Protocol,
  [id, model]: readonly [string, string],
  body: JsonObject,
) {
  const provider = providerNamed(id);
  const endpoint = protocol === 'responses' ? provider.responses?.endpoint : provider.endpoints.chat;
  const written = writeRequest(
    endpoint?.request ?? expect.unreachable(),
    canonical(client, { ...body, model }),
    {
      model,
      provider: provider.name,
      providerId: provider.id,
      unsupported: 'drop',
      promptCache: 'auto',
      isFromOtherProtocol: client !== 'chat',
    },
  );
  return written.kind === 'ok' ? written.value.body : expect.unreachable(written.error.message);
}

function canonical(client: Client, body: JsonObject): CanonicalRequest {
  if (client === 'chat') return { fields: body, turns: null };
  const read = client === 'messages' ? messages.readRequest(body) : readResponsesRequest(body);
  if (read.kind === 'error') return expect.unreachable(read.error.message);
  expect(read.value.translationError).toBeNull();
  return read.value;
}

/** What a cache compares. In chat a mark needs a list, so a text and a list of this text count as equal there. */
function prefixOf(body: JsonObject, protocol: Protocol) {
  const { tools, system, systemInstruction, contents, input, messages: list } = objectOf(withoutMarks(body));
  const turns = readArray(contents ?? input ?? list);
  return {
    head: JSON.stringify([tools, system ?? systemInstruction]),
    turns: turns.map((turn) => JSON.stringify(protocol === 'chat' ? withTextAsText(objectOf(turn)) : turn)),
  };
}

function withoutMarks(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutMarks);
  if (!isObject(value)) return value;
  const entries = Object.entries(omit(value, 'cache_control', 'prompt_cache_breakpoint'));
  return Object.fromEntries(entries.map(([key, inner]) => [key, withoutMarks(inner)]));
}

function withTextAsText(message: JsonObject): JsonObject {
  const [part, ...others] = readArray(message.content);
  const isText = others.length === 0 && isObject(part) && part.type === 'text';
  return isText ? { ...message, content: part.text } : message;
}

function expectPrefixes(
  client: Client,
  protocol: Protocol,
  conversation: Conversation,
  target: readonly [string, string],
) {
  const { body, list, cuts } = conversation;
  const items = readArray(body[list]);
  const upTo = (end: number) => {
    const sent = sentBody(client, protocol, target, {
      ...body,
      [list]: withMark(items.slice(0, end), client),
    });
    return prefixOf(sent, protocol);
  };
  for (const [at, cut] of cuts.slice(0, -1).entries()) {
    const before = upTo(cut);
    const after = upTo(cuts[at + 1] ?? items.length);
    expect(after.head).toBe(before.head);
    expect(after.turns.slice(0, before.turns.length)).toEqual(before.turns);
  }
}

/** Agents mark the end of what they send, and move the mark with each step. Responses has no marks. */
function withMark(items: readonly unknown[], client: Client): readonly unknown[] {
  const last = objectOf(items.at(-1));
  if (client === 'responses') return items;
  const { content } = last;
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : readArray(content);
  const marked = parts.map((part, at) =>
    at === parts.length - 1 ? { ...objectOf(part), cache_control: { type: 'ephemeral' } } : part,
  );
  return [...items.slice(0, -1), { ...last, content: marked }];
}

// Random conversations: one is made in each client protocol from the same numbers.

const PNG = 'iVBORw0KGgo=';
const SCHEMA = { type: 'object', properties: { city: { type: 'string', minLength: 1 } }, required: ['city'] };
/** With a root and keys that Claude refuses. */
const ODD_SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' }, 'filter[id]': { type: 'object', properties: { größe: {} } } },
  anyOf: [{ required: ['city'] }, { required: ['filter[id]'] }],
};
const STATES = [
  [
    'gemini',
    { type: 'reasoning.encrypted', data: 'c2ln', id: 'thought-0', format: 'google-gemini-v1', index: 0 },
  ],
  [
    'gemini',
    { type: 'reasoning.encrypted', data: 'c2ln', id: 'text-3', format: 'google-gemini-v1', index: 1 },
  ],
  [
    'anthropic',
    { type: 'reasoning.text', signature: 'c2ln', id: '0-text', format: 'anthropic-claude-v1', index: 0 },
  ],
  [
    'anthropic',
    { type: 'reasoning.encrypted', data: 'c2ln', id: '0', format: 'anthropic-claude-v1', index: 0 },
  ],
  [
    'openai',
    { type: 'reasoning.encrypted', data: 'c2ln', id: 'rs_1', format: 'openai-responses-v1', index: 1 },
  ],
] as const;

const INPUT = { city: 'Ghent', 'filter[id]': { größe: 7 } };
const FUNCTION = { name: 'tool_0', arguments: JSON.stringify(INPUT) };
const OUTPUTS = {
  function: 'function_call_output',
  custom: 'custom_tool_call_output',
  legacy: 'function_call_output',
} as const;

/** `legacy`: OpenAI's functions from before tools, one at a time. */
type CallKind = 'function' | 'custom' | 'legacy';

interface Call {
  readonly id: string;
  readonly kind: CallKind;
}

class Maker {
  readonly #client: Client;
  readonly #random: () => number;
  readonly #items: JsonObject[] = [];
  readonly #cuts: number[] = [];
  #hasFunctions = false;

  constructor(client: Client, seed: number) {
    this.#client = client;
    this.#random = seeded(seed);
  }

  make(): Conversation {
    this.#hasFunctions = this.#client === 'chat' && this.#chance(0.1);
    const tools = this.#list(0, 3, (at) =>
      this.#tool(`tool_${at}${this.#chance(0.3) ? ' with a name that no provider takes' : ''}`),
    );
    // Two servers with the same tool.
    if (tools.length > 0 && this.#chance(0.2)) tools.push(this.#tool('tool_0'));
    const system = this.#chance(0.6) ? this.#text() : undefined;
    if (system !== undefined && this.#client === 'chat')
      this.#items.push(this.#message('system', [{ type: 'text', text: system }]));
    // A client that has cut the beginning of its history.
    if (this.#chance(0.1)) this.#results([{ id: 'call_cut', kind: this.#callKind() }]);
    for (let turns = 1 + this.#below(3); turns > 0; turns--) this.#turn();
    const list = this.#client === 'responses' ? 'input' : 'messages';
    const named = { chat: {}, messages: { system }, responses: { instructions: system } }[this.#client];
    const body = {
      max_tokens: 5000,
      ...named,
      ...(tools.length === 0 ? {} : { [this.#hasFunctions ? 'functions' : 'tools']: tools }),
      [list]: this.#items,
    };
    return { body, list, cuts: this.#cuts };
  }

  #turn(): void {
    this.#items.push(this.#message('user', this.#parts()));
    const late = this.#client !== 'messages' && this.#chance(0.5) ? 'developer' : 'system';
    if (this.#chance(0.15)) this.#items.push(this.#message(late, [this.#textPart()]));
    this.#cuts.push(this.#items.length);
    for (let steps = this.#below(3); steps > 0; steps--) {
      const most = this.#hasFunctions ? 1 : 3;
      this.#step(this.#list(1, most, (at) => ({ id: this.#callId(at), kind: this.#callKind() })));
      this.#cuts.push(this.#items.length);
    }
    this.#step([]);
  }

  /** The model's reasoning, text and calls, and the results of the calls. */
  #step(calls: readonly Call[]): void {
    const [provider, detail] = STATES[this.#below(STATES.length)] ?? STATES[0];
    const isReasoned = this.#chance(0.6);
    const thought = this.#text();
    const text = calls.length === 0 || this.#chance(0.5) ? this.#text() : undefined;
    const isRefusal = calls.length === 0 && this.#chance(0.1);
    switch (this.#client) {
      case 'chat': {
        const id = `weir1:${provider}:${detail.id}`;
        this.#items.push({
          role: 'assistant',
          ...(isRefusal ? { content: null, refusal: text } : { content: text ?? null }),
          ...(isReasoned
            ? { reasoning_content: thought, reasoning_details: [{ ...detail, text: thought, id }] }
            : {}),
          ...(calls.length === 0
            ? {}
            : this.#hasFunctions
              ? { function_call: FUNCTION }
              : { tool_calls: calls.map(chatCall) }),
        });
        break;
      }
      case 'messages': {
        const signature = encodeReasoningState(provider, { detail });
        this.#items.push({
          role: 'assistant',
          content: [
            ...(isReasoned ? [{ type: 'thinking', thinking: thought, signature }] : []),
            ...(text === undefined ? [] : [{ type: 'text', text }]),
            ...calls.map(({ id }) => ({ type: 'tool_use', id, name: 'tool_0', input: INPUT })),
          ],
        });
        break;
      }
      case 'responses': {
        const encrypted_content = encodeReasoningStates(provider, [{ detail }]);
        if (isReasoned)
          this.#items.push({
            type: 'reasoning',
            summary: [{ type: 'summary_text', text: thought }],
            encrypted_content,
          });
        const part = isRefusal ? { type: 'refusal', refusal: text } : { type: 'output_text', text };
        if (text !== undefined) this.#items.push({ type: 'message', role: 'assistant', content: [part] });
        for (const { id, kind } of calls)
          this.#items.push(
            kind === 'custom'
              ? { type: 'custom_tool_call', call_id: id, name: 'tool_0', input: 'Ghent' }
              : { type: 'function_call', call_id: id, ...FUNCTION },
          );
      }
    }
    this.#results(this.#chance(0.2) ? calls.toReversed() : calls);
  }

  #results(calls: readonly Call[]): void {
    const results = calls.map(({ id, kind }) => {
      const content = this.#contentOf(this.#chance(0.3) ? this.#parts() : [this.#textPart()]);
      if (this.#client === 'messages') return { type: 'tool_result', tool_use_id: id, content };
      if (this.#client === 'responses') return { type: OUTPUTS[kind], call_id: id, output: content };
      return kind === 'legacy'
        ? { role: 'function', name: 'tool_0', content: this.#text() }
        : { role: 'tool', tool_call_id: id, content };
    });
    if (this.#client !== 'messages') this.#items.push(...results);
    else if (results.length > 0) this.#items.push({ role: 'user', content: results });
  }

  /** Some hosts repeat ids, in a step or in several. */
  #callId(at: number): string {
    return this.#chance(0.2) ? 'terminal:0' : `call_${this.#items.length}_${at}`;
  }

  #callKind(): CallKind {
    if (this.#hasFunctions) return 'legacy';
    return this.#client !== 'messages' && this.#chance(0.15) ? 'custom' : 'function';
  }

  #tool(name: string): JsonObject {
    const description = this.#text();
    const schema = this.#chance(0.4) ? ODD_SCHEMA : SCHEMA;
    if (this.#client === 'messages') return { name, description, input_schema: schema };
    const definition = { name, description, parameters: schema, strict: this.#chance(0.5) };
    if (this.#hasFunctions) return { name, description, parameters: schema };
    return this.#client === 'chat'
      ? { type: 'function', function: definition }
      : { type: 'function', ...definition };
  }

  #message(role: string, parts: readonly JsonObject[]): JsonObject {
    return { role, content: this.#contentOf(parts) };
  }

  #contentOf(parts: readonly JsonObject[]): unknown {
    return parts.length === 1 && typeof parts[0]?.text === 'string' && this.#chance(0.5)
      ? parts[0].text
      : parts;
  }

  #parts(): JsonObject[] {
    return this.#list(1, 2, () => (this.#chance(0.75) ? this.#textPart() : this.#image()));
  }

  #textPart(): JsonObject {
    return { type: this.#client === 'responses' ? 'input_text' : 'text', text: this.#text() };
  }

  #image(): JsonObject {
    const url = this.#chance(0.5) ? 'https://example.com/a.png' : `data:image/png;base64,${PNG}`;
    if (this.#client === 'chat') return { type: 'image_url', image_url: { url } };
    if (this.#client === 'responses') return { type: 'input_image', image_url: url };
    return { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } };
  }

  #text(): string {
    return `text ${this.#below(1e6)}${this.#chance(0.2) ? ' and more \n' : ''}`;
  }

  #list<Item>(min: number, max: number, make: (at: number) => Item): Item[] {
    return Array.from({ length: min + this.#below(max - min + 1) }, (_, at) => make(at));
  }

  #below(end: number): number {
    return Math.floor(this.#random() * end);
  }

  #chance(probability: number): boolean {
    return this.#random() < probability;
  }
}

function chatCall({ id, kind }: Call): JsonObject {
  return kind === 'custom'
    ? { id, type: 'custom', custom: { name: 'tool_0', input: 'Ghent' } }
    : { id, type: 'function', function: FUNCTION };
}

const PROTOCOLS: readonly Protocol[] = ['gemini', 'messages', 'responses', 'chat'];

describe.each(['chat', 'messages', 'responses'] as const)('a client of %s', (client) => {
  test.each(PROTOCOLS)(
    'Q16 at a provider of %s: a longer conversation begins with the bytes of the shorter one',
    (protocol) => {
      for (let run = 0; run < RUNS; run++) {
        for (const target of TARGETS[protocol]) {
          const seed = SEED + run;
          try {
            expectPrefixes(client, protocol, new Maker(client, seed).make(), target);
          } catch (error) {
            throw new Error(`SEED=${seed} RUNS=1 repeats it at ${target.join('/')}`, { cause: error });
          }
        }
      }
    },
  );
});

/** Each place behind which the model answered, and the end. System text alone becomes the user's, so no request ends with it. */
function recordedConversation(body: JsonObject): Conversation {
  const list = readArray(body.messages);
  const roleAt = (at: number) => objectOf(list[at]).role;
  const isCut = (at: number) =>
    roleAt(at) === 'assistant' && (roleAt(at - 1) === 'user' || roleAt(at - 1) === 'tool');
  const cuts = list.flatMap((_, at) => (isCut(at) ? [at] : []));
  return { body, list: 'messages', cuts: [...cuts, list.length] };
}

describe.skipIf(requestsNote !== '')(`recorded conversations${requestsNote}`, () => {
  const recorded = readRecordedRequests().filter(
    ({ route, refusal }) => route === 'chat' && refusal === null,
  );

  test.each(PROTOCOLS)(
    'Q16 at a provider of %s: a longer one begins with the bytes of the shorter one',
    (protocol) => {
      const conversations = recorded
        .map(({ body }) => recordedConversation(body))
        .filter(({ cuts }) => cuts.length > 1);
      expect(conversations.length).toBeGreaterThan(10);
      for (const conversation of conversations) {
        for (const target of TARGETS[protocol]) expectPrefixes('chat', protocol, conversation, target);
      }
    },
  );
});
