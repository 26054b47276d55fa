/** The simulated OpenRouter models, and what OpenRouter and its upstream providers reject (2026-11-21). */
import { createHash } from 'node:crypto';
import { compact, type JsonObject, objectOf, objectsOf, textOf } from './json.ts';
import { type Call, openaiRefusal, type Refusal } from './scene.ts';
import { type Piece, wordsOf } from './script.ts';

export interface Model {
  readonly provider: string;
  readonly format: string;
  readonly answer: readonly Piece[];
}
export const MODELS: Readonly<Record<string, Model>> = {
  'google/gemini-3-flash-preview': {
    provider: 'Google AI Studio',
    format: 'google-gemini-v1',
    answer: [
      ...wordsOf('reasoning', 'Which way does the water go?'),
      ...wordsOf('text', 'Downhill, by whichever of the gates is open first.'),
    ],
  },
  'anthropic/claude-haiku-4.5': {
    provider: 'Amazon Bedrock',
    format: 'anthropic-claude-v1',
    answer: [
      ...wordsOf('reasoning', 'A weir question, gently answered.'),
      ...wordsOf('text', 'It lifts the level upstream, and calms the flow.'),
    ],
  },
  'moonshotai/kimi-k2.5': {
    provider: 'ModelRun',
    format: 'unknown',
    answer: [
      ...wordsOf('reasoning', 'The user wants one sentence.'),
      ...wordsOf('text', 'Every weir is a measured kind of patience.'),
    ],
  },
};

/** The code is the status: R openrouter--refused-unknown-model. */
export function refusal(status: number, message: string): Refusal {
  return openaiRefusal(status, { message: status === 401 ? 'User not found.' : message, code: status });
}

/** An error of the upstream provider, with the original text in `metadata.raw`. */
function behind(model: Model, raw: JsonObject): Refusal {
  const metadata = { raw: compact(raw), provider_name: model.provider };
  const error = { message: 'Provider returned error', code: 400, metadata };
  return { status: 400, body: compact({ error, user_id: 'user_sim' }) };
}

export function check(call: Call): Refusal | undefined {
  const { body } = call;
  const model = MODELS[call.model];
  if (!model) return refusal(400, `${call.model} is not a valid model ID`);
  if (objectsOf(body.messages).length === 0) {
    return refusal(400, 'Input required: specify "prompt" or "messages"');
  }
  // The two effort fields must agree: OpenRouter's typescript-sdk, 2026-08-22.
  const { effort = body.reasoning_effort } = objectOf(body.reasoning);
  if ((body.reasoning_effort ?? effort) !== effort) {
    return refusal(400, 'Only one of "reasoning.effort" and "reasoning_effort" may be given');
  }
  // MisakaNet#1473, 2026-09-04.
  if (model.format === 'google-gemini-v1' && (body.presence_penalty || body.frequency_penalty)) {
    return behind(model, googleError('Penalty is not enabled for this model'));
  }
  return detailsProblem(call, model);
}

/**
 * R openrouter--*-details-back: Gemini 3 and Claude require the details in the current turn of a tool loop. Calls from another
 * provider are accepted, because OpenRouter's handling of them is unknown.
 */
function detailsProblem(call: Call, model: Model): Refusal | undefined {
  if (isQuiet(call) && model.format !== 'google-gemini-v1') return undefined;
  const messages = objectsOf(call.body.messages);
  const turn = messages.slice(messages.findLastIndex((message) => message.role === 'user') + 1);
  for (const message of turn) {
    const [first] = objectsOf(message.tool_calls);
    const id = textOf(first?.id);
    if (!first || !id.startsWith(OWN_ID) || isSigned(message, id, call.model, model)) continue;
    if (model.format === 'google-gemini-v1') {
      const name = textOf(objectOf(first.function).name);
      const text = `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. Additional data, function call \`default_api:${name}\`.`;
      return behind(model, googleError(text));
    }
    const text = `messages.${messages.indexOf(message)}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`tool_use\`.`;
    return behind(model, { type: 'error', error: { type: 'invalid_request_error', message: text } });
  }
  return undefined;
}

function googleError(message: string): JsonObject {
  return { error: { code: 400, message, status: 'INVALID_ARGUMENT' } };
}

/** Claude's signature also covers the text, so the complete text must be sent back, in one detail or in several. */
function isSigned(message: JsonObject, id: string, name: string, { format }: Model): boolean {
  const details = objectsOf(message.reasoning_details).filter((detail) => detail.format === format);
  const text = details.map((detail) => textOf(detail.text)).join('');
  if (format === 'google-gemini-v1') {
    // The placeholder for a lost signature: RooCodeInc/Roo-Code#10640, 2026-01-12.
    return details.some(
      ({ data, id: of }) =>
        data === signatureOf(name, id, '') || (data === 'skip_thought_signature_validator' && of === id),
    );
  }
  return format === 'unknown' || details.some((detail) => detail.signature === signatureOf(name, id, text));
}

export function signatureOf(model: string, id: string, text: string): string {
  return `openrouter.${createHash('sha256').update(`${model}\n${id}\n${text}`).digest('base64')}`;
}

/**
 * Whether the model does not reason. Claude reasons only on request (charmbracelet/fantasy, claude-sonnet-4/multi_tool_streaming, 2026-04),
 * and signs nothing otherwise. Gemini signs its calls anyway (google/gemini-api docs, pi#1408).
 */
export function isQuiet({ body, model }: Call): boolean {
  const { effort = body.reasoning_effort, enabled, max_tokens } = objectOf(body.reasoning);
  const isAsked = (effort !== undefined && effort !== 'none') || enabled === true || max_tokens !== undefined;
  return effort === 'none' || (MODELS[model]?.format === 'anthropic-claude-v1' && !isAsked);
}

const OWN_ID = 'tool_sim_';

export function callId(number: number): string {
  return `${OWN_ID}${String(number).padStart(20, '0')}`;
}
