/** Simulates OpenAI's legacy completions: `text_completion` chunks, the choices one after the other. */
import { compact, type Json, type JsonObject, objectOf } from './json.ts';
import { modelOf, scriptsOf, usage } from './openai-models.ts';
import { type Call, CREATED_SECONDS, event, type WireEvent } from './scene.ts';
import { isWords, joined } from './script.ts';

/** The legacy form has the model after the choices, and no tier or fingerprint. */
function legacyBase(call: Call, choices: Json): JsonObject {
  const id = `cmpl-Sim${String(call.serial).padStart(26, '0')}`;
  return { id, object: 'text_completion', created: CREATED_SECONDS, choices, model: modelOf(call).dated };
}

export function* legacyStream(call: Call): Generator<WireEvent> {
  const scripts = scriptsOf(call);
  const wantsUsage = objectOf(call.body.stream_options).include_usage === true;
  const usageNull = wantsUsage ? { usage: null } : {};
  for (const [index, script] of scripts.entries()) {
    for (const piece of script.pieces) {
      const text = isWords(piece) ? piece.text : '';
      const choices = [{ text, index, logprobs: null, finish_reason: null }];
      yield event('piece', compact({ ...legacyBase(call, choices), ...usageNull }));
    }
    const choices = [{ text: '', index, logprobs: null, finish_reason: script.finish }];
    yield event('finish', compact({ ...legacyBase(call, choices), ...usageNull }));
  }
  if (wantsUsage) yield event('usage', compact({ ...legacyBase(call, []), usage: usage(call, scripts) }));
}

export function legacyObject(call: Call): JsonObject {
  const scripts = scriptsOf(call);
  const choices = scripts.map((script, index) => {
    return { text: joined(script, 'text'), index, logprobs: null, finish_reason: script.finish };
  });
  return { ...legacyBase(call, choices), usage: usage(call, scripts) };
}
