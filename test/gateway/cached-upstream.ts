/** Providers with prompt caches behind a gateway in memory, and sessions of agents in the forms in which the clients send them. */
import type { UsageRecord } from '../../src/metering/record.ts';
import { DAY_MS, isoDay } from '../../src/metering/time.ts';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { commonParts, promptParts } from '../../tools/simulator/prompt-cache.ts';
import { FakeClock } from '../stream/fake-clock.ts';
import { LimitedGateway } from './limited-gateway.ts';
import './upstreams.ts';

const SECOND_MS = 1000;
/** How long the providers keep a prompt. */
const KEPT_MS = 300 * SECOND_MS;
const CHARS_PER_TOKEN = 4;

export interface Step {
  readonly path: string;
  readonly body: JsonObject;
  readonly headers: Readonly<Record<string, string>>;
}

interface SentPrompt {
  readonly host: string;
  readonly model: string;
  readonly parts: readonly string[];
  readonly at: number;
}

/** A gateway whose providers read from a cache what an earlier request to the same model began with. */
export class CachedUpstream {
  readonly clock = new FakeClock();
  readonly records: UsageRecord[] = [];
  readonly gateway: LimitedGateway;
  /** Requests to these models, or to these hosts, fail. */
  readonly broken = new Set<string>();
  /** The providers read nothing from their caches. */
  isCacheEmpty = false;
  /** The providers do not report what they read from their caches. */
  isSilent = false;
  readonly #prompts: SentPrompt[] = [];

  constructor(env: JsonObject = {}) {
    this.gateway = new LimitedGateway(
      { AUTH: 'open', ANTHROPIC_API_KEY: 'k', RETRIES: '0', HEARTBEAT_SECONDS: '0', ...env },
      { fetch: (url, init) => this.#answer(String(url), init), clock: this.clock },
      { onRequest: null, onRecord: async (record) => void this.records.push(record) },
    );
  }

  /** Sends a step, a second after the one before. */
  async send({ path, body, headers }: Step, more: Readonly<Record<string, string>> = {}): Promise<Response> {
    await this.clock.advance(SECOND_MS);
    const response = await this.gateway.post(path, 'x', body, { headers: { ...headers, ...more } });
    await response.text();
    await this.gateway.idle();
    return response;
  }

  /** What the list of a session says about each of its requests, in their order. */
  async reported(session: string, query = ''): Promise<readonly JsonObject[]> {
    const day = (ms: number) => isoDay(this.clock.now() + ms);
    const span = `from=${day(-DAY_MS)}&to=${day(2 * DAY_MS)}`;
    const path = `/v1/usage/records?${span}&session=${session}${query}`;
    const response = await this.gateway.fetch(path, 'admin');
    const list = decodeObject(await response.text()) ?? {};
    return objectsOf(list.data)
      .reverse()
      .map(({ cache }) => objectOf(cache));
  }

  async #answer(url: string, init: RequestInit | undefined): Promise<Response> {
    const body = decodeObject(String(init?.body)) ?? {};
    const model = textOf(body.model);
    const { host, pathname } = new URL(url);
    if (this.broken.has(model) || this.broken.has(host))
      return Response.json({ error: { message: 'down' } }, { status: 503 });
    const parts = promptParts(body);
    const now = this.clock.now();
    const cached = this.isCacheEmpty
      ? 0
      : Math.max(
          0,
          ...this.#prompts
            .filter((one) => one.model === model && one.host === host && now - one.at <= KEPT_MS)
            .map((one) => tokensOf(parts.slice(0, commonParts(parts, one.parts)))),
        );
    this.#prompts.push({ host, model, parts, at: now });
    return Response.json(answerIn(pathname, tokensOf(parts), this.isSilent ? null : cached));
  }
}

function tokensOf(parts: readonly string[]): number {
  return Math.ceil(parts.join('').length / CHARS_PER_TOKEN);
}

function answerIn(path: string, prompt: number, cached: number | null): JsonObject {
  if (path.endsWith('/messages')) {
    const usage =
      cached === null
        ? { input_tokens: prompt }
        : { input_tokens: prompt - cached, cache_read_input_tokens: cached, cache_creation_input_tokens: 0 };
    const content = [{ type: 'text', text: 'ok' }];
    const facts = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn' };
    return { ...facts, content, usage: { ...usage, output_tokens: 1 } };
  }
  const counts = { total_tokens: prompt + 1 };
  if (path.endsWith('/responses')) {
    const details = cached === null ? {} : { input_tokens_details: { cached_tokens: cached } };
    const content = [{ type: 'output_text', text: 'ok', annotations: [] }];
    const output = [{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }];
    const facts = { id: 'resp_1', object: 'response', status: 'completed', model: 'm', output };
    return { ...facts, usage: { input_tokens: prompt, output_tokens: 1, ...counts, ...details } };
  }
  const details = cached === null ? {} : { prompt_tokens_details: { cached_tokens: cached } };
  const choice = { index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' };
  return {
    ...{ id: 'a', object: 'chat.completion', created: 1, model: 'm', choices: [choice] },
    usage: { prompt_tokens: prompt, completion_tokens: 1, ...counts, ...details },
  };
}

const SYSTEM = 'You keep the locks of a canal. '.repeat(800);
const RESULT = 'The upper gate is closed. '.repeat(80);

/** How the steps of a client differ from its usual ones. */
export interface Edit {
  readonly model?: string;
  readonly tools?: readonly string[];
  readonly system?: string;
  readonly prompt?: string;
  /** The result of the tool in this step is another one. */
  readonly editedStep?: number;
  /** The level of thinking. */
  readonly effort?: string;
  readonly session?: string;
}

const TOOLS = ['read', 'write', 'run'];

/** The request of a client's step: it continues the one of the step before. */
export type Client = (steps: number, edit?: Edit) => Step;

function resultOf(i: number, { editedStep }: Edit): string {
  return `${i === editedStep ? 'edited' : `step ${i}`}: ${RESULT}`;
}

/**
 * Claude Code 2.1.330 (`npm run agents`, recorded 2026-11-23): marks on the system and on the last message, whose
 * content is a list with the mark and a text without it; system messages between the others; sub-agents have the
 * session's id.
 */
const claudeCode: Client = (steps, edit = {}) => {
  const { model = 'anthropic/claude-sonnet-4-5', tools = TOOLS, system = SYSTEM, effort = 'high' } = edit;
  const { session = 's', prompt = 'Correct river.txt' } = edit;
  const mark = { cache_control: { type: 'ephemeral' } };
  const reminder = (text: string, isLast: boolean) => ({
    role: 'system',
    content: isLast ? [{ type: 'text', text, ...mark }] : text,
  });
  const messages = [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Attribution' },
        { type: 'text', text: prompt },
      ],
    },
    reminder('# Environment', steps === 0),
    ...Array.from({ length: steps }, (_, i) => [
      { role: 'assistant', content: [{ type: 'tool_use', id: `toolu_${i}`, name: 'read', input: {} }] },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: `toolu_${i}`, content: resultOf(i, edit) }],
      },
      reminder(`${1000 - i} tokens left`, i === steps - 1),
    ]).flat(),
  ];
  const body = {
    ...{
      model,
      max_tokens: 9000,
      thinking: { type: 'enabled', budget_tokens: effort === 'low' ? 1024 : 4096 },
    },
    metadata: { user_id: JSON.stringify({ device_id: 'd', account_uuid: '', session_id: session }) },
    tools: tools.map((name) => ({ name, description: name, input_schema: { type: 'object' } })),
    system: [
      { type: 'text', text: 'You are a Claude agent', ...mark },
      { type: 'text', text: system, ...mark },
    ],
    messages,
  };
  return { path: '/v1/messages', body, headers: { 'x-claude-code-session-id': session } };
};

/** Codex 0.169.0 (recorded on the same day): everything is in `input`, and two messages of the user come before the first output. */
const codex: Client = (steps, edit = {}) => {
  const { model = 'openai/gpt-5-mini', tools = TOOLS, system = SYSTEM, effort = 'high' } = edit;
  const { session = 's', prompt = 'Correct river.txt' } = edit;
  const message = (role: string, text: string) => ({
    type: 'message',
    role,
    content: [{ type: 'input_text', text }],
  });
  const input = [
    message('developer', system),
    message('user', '<environment_context>'),
    message('user', prompt),
    ...Array.from({ length: steps }, (_, i) => [
      { type: 'function_call', name: 'read', arguments: '{}', call_id: `call_${i}` },
      { type: 'function_call_output', call_id: `call_${i}`, output: resultOf(i, edit) },
    ]).flat(),
  ];
  const functions = tools.map((name) => ({
    ...{ type: 'function', name, description: name, strict: false },
    parameters: { type: 'object', properties: {} },
  }));
  const body = { model, input, tools: functions, reasoning: { effort }, store: false };
  return { path: '/v1/responses', body, headers: { 'session-id': session, 'thread-id': session } };
};

/** opencode 1.18.33 (recorded on the same day). Its request for a title has the session's id, its sub-agents have their own. */
const opencode: Client = (steps, edit = {}) => {
  const { model = 'deepseek/deepseek-flash', tools = TOOLS, system = SYSTEM, effort = 'high' } = edit;
  const { session = 's', prompt = 'Correct river.txt' } = edit;
  const messages = [
    { role: 'system', content: system },
    { role: 'user', content: prompt },
    ...Array.from({ length: steps }, (_, i) => {
      const call = { id: `call_${i}`, type: 'function', function: { name: 'read', arguments: '{}' } };
      return [
        { role: 'assistant', content: '', tool_calls: [call] },
        { role: 'tool', tool_call_id: `call_${i}`, content: resultOf(i, edit) },
      ];
    }).flat(),
  ];
  const functions = tools.map((name) => ({
    type: 'function',
    function: { name, description: name, parameters: { type: 'object', properties: {} } },
  }));
  const body = { model, messages, tools: functions, tool_choice: 'auto', reasoning_effort: effort };
  return { path: '/v1/chat/completions', body, headers: { 'x-session-id': session } };
};

export const AGENTS: readonly (readonly [string, Client])[] = [
  ['Claude Code', claudeCode],
  ['Codex', codex],
  ['opencode', opencode],
];
