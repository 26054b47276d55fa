/** A simple reader of Responses streams: the last event has the complete response, and a truncated stream has none. */

import {
  type Content,
  emptyChoice,
  emptyContent,
  eventsOf,
} from '../../tools/conformance/contract/content.ts';
import {
  type JsonObject,
  listOf,
  objectOf,
  parseJson,
  textOf,
} from '../../tools/conformance/contract/json.ts';

/** Finish reasons in the words of chat completions. */
const FINISHES: Readonly<Record<string, string>> = {
  completed: 'stop',
  max_output_tokens: 'length',
  content_filter: 'content_filter',
};

/** @param provider the provider that made the tokens */
export function readResponsesStream(text: string, provider: string): Content {
  const events = [...eventsOf(text)].map(({ data }) => objectOf(parseJson(data)));
  const response = objectOf(events.at(-1)?.response);
  // Each event that repeats an item encrypts it again: the first one counts.
  const done = events.filter(({ type }) => type === 'response.output_item.done');
  const output = listOf(response.output).map((item, at) => {
    const own = objectOf(done.find(({ output_index }) => output_index === at)?.item);
    return { ...objectOf(item), encrypted_content: own.encrypted_content ?? null };
  });
  return readResponseObject({ ...response, output }, provider);
}

export function readResponseObject(response: JsonObject, provider: string): Content {
  const content = emptyContent();
  const choice = emptyChoice();
  content.choices.set(0, choice);
  const output = listOf(response.output).map(objectOf);
  for (const [at, item] of output.entries()) {
    for (const part of [...listOf(item.content), ...listOf(item.summary)].map(objectOf)) {
      if (item.type === 'reasoning') choice.reasoning += textOf(part.text);
      else choice.text += textOf(part.text);
      choice.refusal += textOf(part.refusal);
      choice.logprobTokens += listOf(part.logprobs).length;
    }
    if (item.type === 'reasoning' && textOf(item.encrypted_content) !== '') {
      const id = `weir1:${provider}:${textOf(item.id)}`;
      const data = textOf(item.encrypted_content);
      const index = placeOfNext(output, at);
      if (index !== null)
        choice.details.push({ type: 'reasoning.encrypted', data, id, format: 'openai-responses-v1', index });
    }
    if (item.type !== 'function_call') continue;
    const [id, name, json] = [item.call_id, item.name, item.arguments].map(textOf);
    choice.toolCalls.push({ id: id ?? '', name: name ?? '', arguments: json ?? '', extra: null });
  }
  content.error = textOf(objectOf(response.error).message) || null;
  const word = textOf(objectOf(response.incomplete_details).reason) || textOf(response.status);
  const finish = FINISHES[word] ?? null;
  choice.finish = finish === 'stop' && choice.toolCalls.length > 0 ? 'tool_calls' : finish;
  content.done = choice.finish !== null;
  content.usage = usageOf(response);
  content.usageByFinish = content.usage;
  return content;
}

/** Which item of the client's the reasoning came before: 0 is the text, 1 the first call; null: an item that the client does not get. */
function placeOfNext(output: readonly JsonObject[], at: number): number | null {
  const next = output.slice(at).find(({ type }) => type !== 'reasoning');
  const calls = output.filter(({ type }) => type === 'function_call');
  if (next === undefined) return calls.length + 1;
  if (next.type === 'message') return 0;
  return next.type === 'function_call' ? calls.indexOf(next) + 1 : null;
}

function usageOf(response: JsonObject): Content['usage'] {
  const usage = objectOf(response.usage);
  if (typeof usage.input_tokens !== 'number') return null;
  const input = objectOf(usage.input_tokens_details);
  return {
    prompt: usage.input_tokens,
    completion: numberOf(usage.output_tokens),
    total: numberOf(usage.total_tokens),
    cached: numberOf(input.cached_tokens),
    cacheWrite: numberOf(input.cache_write_tokens),
    reasoning: numberOf(objectOf(usage.output_tokens_details).reasoning_tokens),
  };
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}
