/** Starts a gateway whose keys have limits, with an upstream that reports the usage that a test sets. */
import { type JsonObject, objectOf, textOf } from '../../../tools/simulator/json.ts';
import type { RecordedRequest } from '../../../tools/simulator/recorded-request.ts';
import type { Replay } from '../../../tools/simulator/server.ts';
import { jsonOf } from '../client.ts';
import { ADMIN_TOKEN, type Gateway, type GatewayOptions, startGateway } from '../gateway.ts';

const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const CHAT = '/v1/chat/completions';

interface Usage {
  readonly prompt: number;
  readonly completion: number;
}

export interface Key {
  readonly id: string;
  readonly token: string;
}

export interface Limited extends AsyncDisposable {
  readonly gateway: Gateway;
  /** The usage that the upstream reports for every request; null: the simulator's own. */
  usage: Usage | null;
  create(limits: JsonObject): Promise<Key>;
  /** Sends a request with the key. By default its model is DeepSeek's and its output limit 100. */
  ask(key: Key, fields?: JsonObject, init?: RequestInit): Promise<Response>;
  /** `GET /v1/key`. */
  standing(key: Key): Promise<JsonObject>;
  /** Waits until no request of the key runs: its budget has nothing reserved. */
  settled(key: Key): Promise<JsonObject>;
  patch(key: Key, limits: unknown): Promise<Response>;
}

export async function startLimited(options: GatewayOptions = {}): Promise<Limited> {
  let usage: Usage | null = { prompt: 7, completion: 3 };
  const replay = (request: RecordedRequest) =>
    options.replay?.(request) ?? (usage === null ? undefined : answerWith(request, usage));
  const { vars: given } = options;
  const vars: GatewayOptions['vars'] = (simulatorUrl) => ({
    AUTH: 'keys',
    ...(typeof given === 'function' ? given(simulatorUrl) : given),
  });
  const gateway = await startGateway({ ...options, replay, vars });

  const limited: Limited = {
    gateway,
    get usage() {
      return usage;
    },
    set usage(value) {
      usage = value;
    },
    create: async (limits) => {
      const response = await gateway.post('/admin/keys', { name: 'test', ...limits }, { headers: ADMIN });
      const made = await jsonOf(response);
      if (response.status !== 201) throw new Error(JSON.stringify(made));
      return { id: textOf(made.id), token: textOf(made.key) };
    },
    ask: (key, fields = {}, init = {}) => {
      const body = {
        model: 'deepseek/deepseek-flash',
        messages: [{ role: 'user', content: 'Hello there' }],
        max_tokens: 100,
        ...fields,
      };
      return gateway.post(CHAT, body, { ...init, headers: { authorization: `Bearer ${key.token}` } });
    },
    standing: async (key) =>
      jsonOf(await gateway.fetch('/v1/key', { headers: { authorization: `Bearer ${key.token}` } })),
    settled: async (key) => {
      for (;;) {
        const standing = await limited.standing(key);
        if (objectOf(standing.budget).reserved === 0) return standing;
      }
    },
    patch: (key, limits) =>
      gateway.fetch(`/admin/keys/${key.id}`, {
        method: 'PATCH',
        headers: ADMIN,
        body: JSON.stringify(limits),
      }),
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
  return limited;
}

function answerWith({ body }: RecordedRequest, { prompt, completion }: Usage): Replay {
  const usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
  const id = { id: 'a', created: 1, model: textOf(body?.model) };
  if (body?.stream === true) {
    const chunk = {
      ...id,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
      usage,
    };
    return { chunks: [Buffer.from(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`)] };
  }
  const message = { role: 'assistant', content: 'Hi' };
  const whole = {
    ...id,
    object: 'chat.completion',
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage,
  };
  return {
    headers: { 'content-type': 'application/json' },
    chunks: [Buffer.from(JSON.stringify(whole))],
  };
}
