/** Reads Responses streams and objects into the contract's form, to compare them with what the upstream sent. */

import { decodeReasoningStates } from '../../../src/protocols/shared/reasoning-state.ts';
import { EmbeddedJson } from '../../../src/shared/json.ts';
import { eventsIn } from '../../../tools/conformance/contract/check-responses.ts';
import { type Content, emptyChoice, emptyContent } from '../../../tools/conformance/contract/content.ts';
import { type JsonObject, listOf, objectOf, textOf } from '../../../tools/conformance/contract/json.ts';
import { itemsOf } from '../../../tools/conformance/contract/responses-schema.ts';

const FINISHES: Readonly<Record<string, string>> = {
  max_output_tokens: 'length',
  content_filter: 'content_filter',
};

/** Reads the response object of the last event. */
export function readResponses(text: string): Content {
  const ending = eventsIn(text).at(-1) ?? {};
  const reading = readResponse(objectOf(ending.response));
  reading.done = text.endsWith('data: [DONE]\n\n');
  return reading;
}

export function readResponse(response: JsonObject): Content {
  const reading = emptyContent();
  const choice = emptyChoice();
  reading.choices.set(0, choice);
  for (const item of itemsOf(response)) {
    for (const part of listOf(item.content).map(objectOf)) {
      if (item.type === 'reasoning') choice.reasoning += textOf(part.text);
      else choice.text += textOf(part.text);
      choice.refusal += textOf(part.refusal);
      choice.logprobTokens += listOf(part.logprobs).length;
    }
    for (const part of listOf(item.summary).map(objectOf)) choice.reasoning += textOf(part.text);
    for (const state of decodeReasoningStates(item.encrypted_content, new EmbeddedJson())) {
      if ('detail' in state) choice.details.push(JSON.parse(JSON.stringify(state.detail)));
    }
    if (typeof item.call_id !== 'string') continue;
    const name = textOf(item.name);
    choice.toolCalls.push({
      id: item.call_id,
      name,
      arguments: textOf(item.arguments ?? item.input),
      extra: null,
    });
  }
  reading.error = textOf(objectOf(response.error).message) || null;
  const reason = textOf(objectOf(response.incomplete_details).reason);
  const finished = choice.toolCalls.length > 0 ? 'tool_calls' : 'stop';
  if (reading.error === null) choice.finish = FINISHES[reason] ?? finished;
  const usage = objectOf(response.usage);
  const input = objectOf(usage.input_tokens_details);
  const output = objectOf(usage.output_tokens_details);
  if (typeof usage.input_tokens === 'number') {
    reading.usage = {
      prompt: numberOf(usage.input_tokens),
      completion: numberOf(usage.output_tokens),
      total: numberOf(usage.total_tokens),
      // The protocol has 0 for none.
      cached: numberOf(input.cached_tokens) || null,
      cacheWrite: numberOf(input.cache_write_tokens),
      reasoning: numberOf(output.reasoning_tokens) || null,
    };
  }
  return reading;
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}
