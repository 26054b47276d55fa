/**
 * Simulates Converse of Bedrock's Runtime (2026-11-28): messages of AWS's event stream with padding, text and reasoning without a start of
 * their block, `metadata` after `messageStop`, counts of both caches under two names; JSON without `stream`; `count-tokens`.
 *
 * Tokens (completion): us.amazon.nova-2-lite-v1:0 9, moonshot.kimi-k2-thinking 14 (6 of them reasoning), mistral.mistral-large-2402-v1:0 8.
 */
import { type ConverseModel, converseProblem, refusedIds } from './converse-check.ts';
import { messageEvent } from './eventstream.ts';
import { decodeObject, type JsonObject, numberOf, objectOf, objectsOf, textOf } from './json.ts';
import type { Call, Refusal, WireEvent } from './scene.ts';
import { costOf, type Piece, type Script, scriptFor, wholeCalls, wordsOf } from './script.ts';

const NOVA: ConverseModel = {
  ...{ reasoning: 'none', callIds: /^[a-zA-Z0-9_.:-]{1,64}$/ },
  ...{ takesNamedChoice: true, takesDefinitions: false, cachePoints: 'outside tools' },
};
const OPEN: ConverseModel = { ...NOVA, takesDefinitions: true, cachePoints: 'nowhere' };

interface Served extends ConverseModel {
  readonly answer: readonly Piece[];
}

const MODELS: Readonly<Record<string, Served>> = {
  'us.amazon.nova-2-lite-v1:0': {
    ...NOVA,
    answer: wordsOf('text', 'A nova lights the weir; the café’s gate opens.'),
  },
  'moonshot.kimi-k2-thinking': {
    ...{ ...OPEN, reasoning: 'texts' },
    answer: [
      ...wordsOf('reasoning', 'Water first, then gates, then words.'),
      ...wordsOf('text', 'The gate opens; the basin follows, slowly, downstream.'),
    ],
  },
  'mistral.mistral-large-2402-v1:0': {
    ...{ ...OPEN, callIds: /^[a-zA-Z0-9]{9}$/, takesNamedChoice: false },
    answer: wordsOf('text', 'Le barrage tient, et le canal le suit.'),
  },
};

export const CONVERSE_MODELS = Object.keys(MODELS);

/** The parts of a path below the host: the model and the operation. */
export const CONVERSE_PATH = /^\/bedrock\/runtime\/model\/([^/]+)\/(converse|converse-stream|count-tokens)$/;

function refusal(status: number, message: string): Refusal {
  return { status, body: JSON.stringify({ message }) };
}

export function checkConverse(call: Call): Refusal | undefined {
  const model = MODELS[modelOf(call)];
  if (model === undefined) return refusal(400, 'The provided model identifier is invalid.');
  if (call.operation === 'count') {
    // Of a profile: recorded, bedrock--refused-count-profile.
    if (/^us\./.test(call.model)) return refusal(400, "The provided model doesn't support counting tokens.");
    const { converse } = objectOf(call.body.input);
    const counted =
      converse === undefined ? 'input.converse is required' : converseProblem(objectOf(converse), model);
    return counted === undefined ? undefined : refusal(400, counted);
  }
  const problem = converseProblem(call.body, model);
  if (problem !== undefined) return refusal(400, problem);
  const [id] = refusedIds(call.body, model);
  return id === undefined
    ? undefined
    : refusal(400, `Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`);
}

/** Counts are asked under the name without its region. */
function modelOf({ model, operation }: Call): string {
  return operation === 'count' && !(model in MODELS) ? `us.${model}` : model;
}

/** The call with a body of chat, which the script reads. */
function asChat(call: Call): Call {
  const { messages, system, toolConfig, inferenceConfig, outputConfig } = call.body;
  const { tools } = objectOf(toolConfig);
  const limit = numberOf(objectOf(inferenceConfig).maxTokens);
  const { schema } = objectOf(objectOf(objectOf(objectOf(outputConfig).textFormat).structure).jsonSchema);
  const systemTexts = objectsOf(system)
    .map(({ text }) => textOf(text))
    .filter(Boolean);
  const body: JsonObject = {
    messages: [
      ...(systemTexts.length === 0 ? [] : [{ role: 'system', content: systemTexts.join('\n') }]),
      ...objectsOf(messages).flatMap(chatMessages),
    ],
    tools: objectsOf(tools)
      .filter(({ toolSpec }) => toolSpec !== undefined)
      .map(({ toolSpec }) => {
        const { name, inputSchema } = objectOf(toolSpec);
        return {
          type: 'function',
          function: { name: textOf(name), parameters: objectOf(inputSchema).json ?? {} },
        };
      }),
    ...(limit === undefined ? {} : { max_tokens: limit }),
    ...(schema === undefined
      ? {}
      : {
          response_format: {
            type: 'json_schema',
            json_schema: { schema: decodeObject(textOf(schema)) ?? {} },
          },
        }),
  };
  return { ...call, body };
}

function chatMessages({ role, content }: JsonObject): JsonObject[] {
  const blocks = objectsOf(content);
  const text = blocks.map((block) => textOf(block.text)).join('');
  const calls = blocks.flatMap(({ toolUse }) => (toolUse === undefined ? [] : [objectOf(toolUse)]));
  if (role === 'assistant') {
    const toolCalls = calls.map(({ name }) => ({
      type: 'function',
      function: { name: textOf(name), arguments: '{}' },
    }));
    return [{ role: 'assistant', content: text, ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}) }];
  }
  const results = blocks.filter(({ toolResult }) => toolResult !== undefined);
  return [
    ...results.map((): JsonObject => ({ role: 'tool', content: 'result' })),
    ...(text === '' ? [] : [{ role: 'user', content: text }]),
  ];
}

function scriptOf(call: Call): Script {
  return scriptFor(asChat(call), MODELS[call.model]?.answer ?? []);
}

function usageOf(call: Call, script: Script): JsonObject {
  const { prompt, completion, cached } = costOf(asChat(call), [script]);
  const read = MODELS[call.model]?.cachePoints === 'nowhere' ? 0 : cached;
  const counts = { inputTokens: prompt - read, outputTokens: completion, totalTokens: prompt + completion };
  const cache = {
    cacheReadInputTokens: read,
    cacheReadInputTokenCount: read,
    cacheWriteInputTokens: 0,
    cacheWriteInputTokenCount: 0,
  };
  return { ...counts, ...(read === 0 ? {} : cache), serverToolUsage: {} };
}

const REASONS: Readonly<Record<string, string>> = { length: 'max_tokens', tool_calls: 'tool_use' };

function stopReason(script: Script): string {
  return REASONS[script.finish] ?? 'end_turn';
}

/** Padding against the measurement of lengths. */
function padding(at: number): string {
  return 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'.slice(0, 1 + ((at * 17) % 52));
}

function callId(number: number): string {
  return `tooluse_sim-${String(number).padStart(3, '0')}_x`;
}

export function* streamConverse(call: Call): Generator<WireEvent> {
  const script = scriptOf(call);
  let at = 0;
  const message = (kind: WireEvent['kind'], type: string, payload: object) =>
    messageEvent(kind, type, { ...payload, p: padding(at++) });
  yield message('role', 'messageStart', { role: 'assistant' });
  let block = -1;
  let open = '';
  for (const piece of script.pieces) {
    const kind = piece.kind === 'call' || piece.kind === 'arguments' ? `call ${piece.index}` : piece.kind;
    if (kind !== open) {
      if (open !== '') yield message('vendor', 'contentBlockStop', { contentBlockIndex: block });
      open = kind;
      block++;
    }
    const head = { contentBlockIndex: block };
    if (piece.kind === 'call') {
      const toolUse = { toolUseId: callId(piece.number), name: piece.name };
      yield message('piece', 'contentBlockStart', { ...head, start: { toolUse } });
      yield message('piece', 'contentBlockDelta', { ...head, delta: { toolUse: { input: '' } } });
    } else if (piece.kind === 'arguments') {
      yield message('piece', 'contentBlockDelta', { ...head, delta: { toolUse: { input: piece.text } } });
    } else {
      const delta =
        piece.kind === 'reasoning' ? { reasoningContent: { text: piece.text } } : { text: piece.text };
      yield message('piece', 'contentBlockDelta', { ...head, delta });
    }
  }
  if (open !== '') yield message('vendor', 'contentBlockStop', { contentBlockIndex: block });
  yield message('finish', 'messageStop', { stopReason: stopReason(script) });
  yield message('usage', 'metadata', { usage: usageOf(call, script), metrics: { latencyMs: 7 } });
}

export function converseObject(call: Call): string {
  if (call.operation === 'count') {
    const counted = { ...call, body: objectOf(objectOf(call.body.input).converse) };
    return JSON.stringify({ inputTokens: costOf(asChat(counted), []).prompt });
  }
  const script = scriptOf(call);
  const textOfKind = (kind: string) =>
    script.pieces.map((piece) => (piece.kind === kind && 'text' in piece ? piece.text : '')).join('');
  const [reasoning, text] = [textOfKind('reasoning'), textOfKind('text')];
  const content = [
    ...(reasoning === '' ? [] : [{ reasoningContent: { reasoningText: { text: reasoning } } }]),
    ...(text === '' ? [] : [{ text }]),
    ...wholeCalls(script).map(({ number, name, arguments: args }) => ({
      toolUse: { toolUseId: callId(number), name, input: decodeObject(args) ?? {} },
    })),
  ];
  return JSON.stringify({
    output: { message: { role: 'assistant', content } },
    stopReason: stopReason(script),
    usage: usageOf(call, script),
    metrics: { latencyMs: 7 },
  });
}
