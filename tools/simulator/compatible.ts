/**
 * Simulates a lenient OpenAI-compatible provider with Groq's wire format. It ignores unknown fields.
 *
 * Tokens (completion): Qwen/Qwen3.8-27B 8, llama-3.3-70b-versatile 10, openai/gpt-oss-20b 14 (8 of them reasoning).
 */
import { groqObject, groqStream } from './groq-form.ts';
import { compact, objectsOf } from './json.ts';
import { type Call, chatRoutes, errorType, openaiRefusal, type Refusal, type Scene } from './scene.ts';
import { type Piece, type Script, scriptFor, wordsOf } from './script.ts';

const ANSWERS: Readonly<Record<string, readonly Piece[]>> = {
  'Qwen/Qwen3.8-27B': wordsOf('text', 'One message first, and then the river.'),
  'llama-3.3-70b-versatile': wordsOf(
    'text',
    'Fast water, same river: compatible is as compatible does, naïvely.',
  ),
  'openai/gpt-oss-20b': [
    ...wordsOf('reasoning', 'They ask for the shortest path; count edges.'),
    ...wordsOf('text', 'Three edges, through the second lock.'),
  ],
};

export const compatible: Scene = {
  id: 'compatible',
  routes: chatRoutes('compatible'),
  models: Object.keys(ANSWERS),
  comment: 'ping',
  streamError: { message: 'Over capacity', type: 'internal_server_error', code: 'over_capacity' },
  refusal,
  check,
  stream: (call) => groqStream(call, scriptOf(call)),
  object: (call) => compact(groqObject(call, scriptOf(call))),
};

function scriptOf(call: Call): Script {
  return scriptFor(call, ANSWERS[call.model] ?? []);
}

function refusal(status: number, message: string): Refusal {
  const code = status === 401 ? { code: 'invalid_api_key' } : {};
  return openaiRefusal(status, { message, type: errorType(status), ...code });
}

function check(call: Call): Refusal | undefined {
  // The model's chat template has this rule on every server: QwenLM/Qwen3.8#244, 2026-09-22; vllm-project/vllm#41114, 2026-04-28.
  const roles = objectsOf(call.body.messages).map(({ role }) => role);
  if (call.model.startsWith('Qwen/') && roles.lastIndexOf('system') > 0)
    return refusal(400, 'System message must be at the beginning.');
  if (objectsOf(call.body.messages).length === 0)
    return refusal(400, "'messages' : minimum number of items is 1");
  if (call.body.logprobs) return refusal(400, 'property logprobs is unsupported');
  if (call.body.n !== undefined && call.body.n !== 1) return refusal(400, "'n' : number must be at most 1");
  return call.model in ANSWERS ? undefined : refusal(404, `The model \`${call.model}\` does not exist`);
}
