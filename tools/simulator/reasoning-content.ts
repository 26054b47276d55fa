/**
 * Plain chat chunks with `reasoning_content`, as Moonshot and Z.ai stream them: https://platform.kimi.ai/docs,
 * https://docs.z.ai (2026-11-23).
 */
import { compact, type JsonObject, objectOf } from './json.ts';
import { type Call, CREATED_SECONDS, DONE, event, type WireEvent } from './scene.ts';
import { costOf, isWords, joined, type Script } from './script.ts';
import { callDelta, messageCalls } from './tool-calls.ts';

export interface ReasoningForm {
  readonly script: Script;
  readonly callId: (number: number) => string;
}

export function* reasoningStream(call: Call, { script, callId }: ReasoningForm): Generator<WireEvent> {
  const write = (kind: WireEvent['kind'], delta: JsonObject, finish_reason: string | null = null) =>
    event(
      kind,
      compact({ ...head(call, 'chat.completion.chunk'), choices: [{ index: 0, delta, finish_reason }] }),
    );
  yield write('role', { role: 'assistant', content: '' });
  for (const piece of script.pieces) {
    const key = piece.kind === 'reasoning' ? 'reasoning_content' : 'content';
    yield write('piece', isWords(piece) ? { [key]: piece.text } : callDelta(piece, callId));
  }
  yield write('finish', {}, script.finish);
  if (objectOf(call.body.stream_options).include_usage === true) {
    const usage = usageOf(call, script);
    yield event('usage', compact({ ...head(call, 'chat.completion.chunk'), choices: [], usage }));
  }
  yield DONE;
}

export function reasoningObject(call: Call, { script, callId }: ReasoningForm): string {
  const reasoning = joined(script, 'reasoning');
  const message = {
    role: 'assistant',
    content: joined(script, 'text'),
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...messageCalls(script, callId),
  };
  const choices = [{ index: 0, message, finish_reason: script.finish }];
  return compact({ ...head(call, 'chat.completion'), choices, usage: usageOf(call, script) });
}

function head({ serial, model }: Call, object: string): JsonObject {
  return { id: `chatcmpl-${serial}`, object, created: CREATED_SECONDS, model };
}

function usageOf(call: Call, script: Script): JsonObject {
  const { prompt, completion, total, cached, reasoning } = costOf(call, [script]);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: total,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
}
