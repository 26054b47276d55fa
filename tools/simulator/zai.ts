/**
 * Simulates Z.ai (2026-11-23), which ignores unknown fields. What each model accepts: https://docs.z.ai/guides/capabilities/thinking as
 * charmbracelet/catwalk#603 quotes it (2026-09-16), in the words of NousResearch/hermes-agent#85890 and vectorize-io/hindsight#4246.
 *
 * Tokens (completion): glm-5.3 11 (5 of them reasoning), glm-5.2 9 (3; 6 without thinking).
 */
import { type JsonObject, objectOf, objectsOf, textOf } from './json.ts';
import { type ReasoningForm, reasoningObject, reasoningStream } from './reasoning-content.ts';
import { type Call, chatRoutes, openaiRefusal, type Refusal, type Scene } from './scene.ts';
import { type Piece, scriptFor, wordsOf } from './script.ts';

interface Model {
  readonly answer: readonly Piece[];
  readonly canBeOff: boolean;
  readonly efforts: readonly string[];
}

const MODELS: Readonly<Record<string, Model>> = {
  'glm-5.3': {
    answer: [
      ...wordsOf('reasoning', 'A weir is a question.'),
      ...wordsOf('text', 'The river answers it every day.'),
    ],
    canBeOff: false,
    efforts: ['low', 'high', 'max'],
  },
  'glm-5.2': {
    answer: [
      ...wordsOf('reasoning', 'Stone before water.'),
      ...wordsOf('text', 'And then both, for a while.'),
    ],
    canBeOff: true,
    efforts: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
  },
};

export const zai: Scene = {
  id: 'zai',
  routes: chatRoutes('zai'),
  models: Object.keys(MODELS),
  comment: 'ping',
  streamError: { code: '500', message: 'Internal network failure' },
  refusal,
  check,
  stream: (call) => reasoningStream(call, formOf(call)),
  object: (call) => reasoningObject(call, formOf(call)),
};

function refusal(status: number, message: string, code = String(status)): Refusal {
  return openaiRefusal(status, { code, message });
}

function check({ body, model: name }: Call): Refusal | undefined {
  const model = MODELS[name];
  if (model === undefined) return refusal(400, 'Unknown Model, please check the model code.', '1211');
  const messages = objectsOf(body.messages);
  if (messages.length === 0) return refusal(400, 'Input cannot be empty', '1213');
  if (messages.some(({ role }) => role === 'developer'))
    return refusal(400, 'Incorrect role information', '1214');
  if (body.tool_choice !== undefined && body.tool_choice !== 'auto')
    return refusal(400, 'Tool choice must be auto', '1210');
  const effort = body.reasoning_effort;
  const isOff = objectOf(body.thinking).type === 'disabled' && !model.canBeOff;
  const isUnknown = effort !== undefined && !model.efforts.includes(textOf(effort));
  const message =
    'This model always engages in thinking and cannot be disabled; please use low, high, or max';
  return isOff || isUnknown ? refusal(400, message, '1210') : undefined;
}

function formOf(call: Call): ReasoningForm {
  const { thinking, reasoning_effort }: JsonObject = call.body;
  const isOff =
    objectOf(thinking).type === 'disabled' || reasoning_effort === 'none' || reasoning_effort === 'minimal';
  const answer = MODELS[call.model]?.answer ?? [];
  const shown = isOff ? answer.filter(({ kind }) => kind !== 'reasoning') : answer;
  return { script: scriptFor(call, shown), callId: (number) => `call_${number}` };
}
