/**
 * Simulates Moonshot (2026-11-23). What each model accepts, by https://platform.kimi.ai/docs/api/models-overview as
 * lemon07r/opencode-kimi-full#11 quotes it (2026-09), in the words of HKUDS/nanobot#3939, MoonshotAI/Kimi-K2#141 and #2498,
 * Warma10032/VideoAdGuard#34 and UKGovernmentBEIS/inspect_ai#5152. It ignores unknown fields.
 *
 * Tokens (completion): kimi-k3 12 (5 of them reasoning), kimi-k2.7-code 11 (4), kimi-k2.6 10 (4; 6 without thinking).
 */
import { type JsonObject, objectOf, objectsOf, textOf } from './json.ts';
import { type ReasoningForm, reasoningObject, reasoningStream } from './reasoning-content.ts';
import { type Call, chatRoutes, errorType, openaiRefusal, type Refusal, type Scene } from './scene.ts';
import { type Piece, scriptFor, wordsOf } from './script.ts';

interface Model {
  readonly answer: readonly Piece[];
  /** The accepted `thinking.type`. Empty: the model has no such field. */
  readonly thinking: readonly string[];
  readonly efforts: readonly string[];
  readonly choices: readonly string[];
}

const MODELS: Readonly<Record<string, Model>> = {
  'kimi-k3': {
    answer: [
      ...wordsOf('reasoning', 'Moon, tide, weir, river, sea.'),
      ...wordsOf('text', 'The tide turns twice before the weir.'),
    ],
    thinking: [],
    efforts: ['low', 'high', 'max'],
    choices: ['auto', 'none', 'required'],
  },
  'kimi-k2.7-code': {
    answer: [
      ...wordsOf('reasoning', 'Types first, then tests.'),
      ...wordsOf('text', 'It compiles, and the gate opens once.'),
    ],
    thinking: ['enabled'],
    efforts: [],
    choices: ['auto', 'none'],
  },
  'kimi-k2.6': {
    answer: [
      ...wordsOf('reasoning', 'One gate, two moons.'),
      ...wordsOf('text', 'Both rise over the same weir.'),
    ],
    thinking: ['enabled', 'disabled'],
    efforts: ['low', 'medium', 'high'],
    choices: ['auto', 'none', 'required', 'named'],
  },
};

export const moonshot: Scene = {
  id: 'moonshot',
  routes: chatRoutes('moonshot'),
  models: Object.keys(MODELS),
  comment: 'ping',
  streamError: { message: 'The engine is currently overloaded', type: 'engine_overloaded_error' },
  refusal,
  check,
  stream: (call) => reasoningStream(call, formOf(call)),
  object: (call) => reasoningObject(call, formOf(call)),
};

function refusal(status: number, message: string): Refusal {
  return openaiRefusal(status, { message, type: errorType(status) });
}

function check({ body, model: name }: Call): Refusal | undefined {
  const model = MODELS[name];
  if (model === undefined) return refusal(404, `Not found the model ${name} or Permission denied`);
  if (objectsOf(body.messages).length === 0) return refusal(400, 'Invalid request: messages is required');
  const message =
    thinkingProblem(body, model) ??
    fixedProblem(body) ??
    (isThinking(body) ? loopProblem(body, model) : undefined);
  return message === undefined ? undefined : refusal(400, message);
}

function thinkingProblem(body: JsonObject, { thinking, efforts }: Model): string | undefined {
  const { type } = objectOf(body.thinking);
  const effort = body.reasoning_effort;
  if (type !== undefined && effort !== undefined)
    return "cannot specify both 'thinking' and 'reasoning_effort'";
  if (type !== undefined && !thinking.includes(textOf(type))) {
    return thinking.length === 0
      ? 'invalid thinking: the parameter is not supported by this model'
      : `invalid thinking: only type=${thinking.join(', ')} is allowed for this model`;
  }
  if (effort === undefined || efforts.includes(textOf(effort))) return undefined;
  return `invalid reasoning_effort: ${textOf(effort)} is not supported by this model`;
}

function fixedProblem(body: JsonObject): string | undefined {
  const temperature = isThinking(body) ? 1 : 0.6;
  const fixed: JsonObject = { temperature, top_p: 0.95, n: 1, presence_penalty: 0, frequency_penalty: 0 };
  const field = Object.keys(fixed).find((name) => body[name] !== undefined && body[name] !== fixed[name]);
  return field === undefined
    ? undefined
    : `invalid ${field}: only ${String(fixed[field])} is allowed for this model`;
}

function loopProblem(body: JsonObject, { choices }: Model): string | undefined {
  const choice = typeof body.tool_choice === 'object' ? 'specified' : textOf(body.tool_choice ?? 'auto');
  const isForced = choice === 'specified' || choice === 'required';
  if (isForced && !(choice === 'required' && choices.length === 3)) {
    return `tool_choice '${choice}' is incompatible with thinking enabled`;
  }
  const missing = objectsOf(body.messages).findIndex(
    ({ role, tool_calls, reasoning_content }) =>
      role === 'assistant' && tool_calls !== undefined && (reasoning_content ?? '') === '',
  );
  return missing < 0
    ? undefined
    : `thinking is enabled but reasoning_content is missing in assistant tool call message at index ${missing}`;
}

function isThinking({ thinking }: JsonObject): boolean {
  return objectOf(thinking).type !== 'disabled';
}

function formOf(call: Call): ReasoningForm {
  const answer = MODELS[call.model]?.answer ?? [];
  const shown = isThinking(call.body) ? answer : answer.filter(({ kind }) => kind !== 'reasoning');
  return { script: scriptFor(call, shown), callId: (number) => `tool_${number}` };
}
