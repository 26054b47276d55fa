/** Shows an agent loop: the model thinks, calls tools and reads their results, until it writes its final text. */
import { frames, type GatewayAccess, post } from './demo-stream.ts';
import { decodeObject, type JsonObject, numberOf, objectOf, objectsOf, textOf } from './json.ts';
import { Painter } from './terminal.ts';

const MODEL = 'deepseek/deepseek-flash';
const STEPS = 3;
/** Stops a loop that doesn't end. */
const MAX_REQUESTS = STEPS + 2;
const TOOLS = ['gauge', 'forecast'].map((name) => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: { city: { type: 'string' } } } },
}));

export interface LoopTotals {
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** The differences from the expected result; empty if there are none. */
  readonly failures: readonly string[];
}

/** One streamed message, assembled as a client sends it back. */
interface Answer {
  readonly message: JsonObject;
  readonly calls: readonly JsonObject[];
  readonly usage: JsonObject;
}

export async function showLoop(gateway: GatewayAccess): Promise<LoopTotals> {
  const painter = new Painter();
  const question = `steps:${STEPS} Is the river rising at Zürich?`;
  const messages: JsonObject[] = [{ role: 'user', content: question }];
  const totals = { requests: 0, promptTokens: 0, completionTokens: 0 };
  painter.whole('prompt', question);
  while (totals.requests < MAX_REQUESTS) {
    const answer = await request(gateway, messages, painter);
    totals.requests += 1;
    totals.promptTokens += numberOf(answer.usage.prompt_tokens) ?? 0;
    totals.completionTokens += numberOf(answer.usage.completion_tokens) ?? 0;
    if (answer.calls.length === 0) break;
    // DeepSeek rejects the next step without the reasoning of this one.
    messages.push(answer.message);
    for (const { id } of answer.calls) {
      const content = '312 cm, rising';
      painter.whole('result', content);
      messages.push({ role: 'tool', tool_call_id: textOf(id), content });
    }
  }
  const expected = STEPS + 1;
  const failures =
    totals.requests === expected ? [] : [`the loop took ${totals.requests} requests, expected ${expected}`];
  painter.note(`${totals.requests} requests · ${totals.promptTokens} + ${totals.completionTokens} tokens`);
  return { ...totals, failures };
}

async function request(
  gateway: GatewayAccess,
  messages: readonly JsonObject[],
  painter: Painter,
): Promise<Answer> {
  const options = { stream: true, stream_options: { include_usage: true } };
  const body: JsonObject = { model: MODEL, messages: [...messages], tools: TOOLS, ...options };
  const response = await post(gateway, { path: '/v1/chat/completions', body });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  let reasoning = '';
  let content = '';
  let usage: JsonObject = {};
  const calls: { id: string; type: 'function'; function: { name: string; arguments: string } }[] = [];
  for await (const frame of frames(response.body)) {
    const chunk = decodeObject(frame.replace('data: ', '')) ?? {};
    if (chunk.usage) usage = objectOf(chunk.usage);
    const delta = objectOf(objectsOf(chunk.choices)[0]?.delta);
    for (const [part, text] of [
      ['reasoning', textOf(delta.reasoning_content)],
      ['text', textOf(delta.content)],
    ] as const) {
      if (text !== '') painter.paint(part, text);
    }
    reasoning += textOf(delta.reasoning_content);
    content += textOf(delta.content);
    for (const fragment of objectsOf(delta.tool_calls)) {
      const call = calls[numberOf(fragment.index) ?? 0] ?? {
        id: textOf(fragment.id),
        type: 'function',
        function: { name: textOf(objectOf(fragment.function).name), arguments: '' },
      };
      calls[numberOf(fragment.index) ?? 0] = call;
      call.function.arguments += textOf(objectOf(fragment.function).arguments);
    }
  }
  for (const { function: called } of calls) painter.whole('call', `${called.name} ${called.arguments}`);
  const message = { role: 'assistant', content, reasoning_content: reasoning, tool_calls: calls };
  return { message, calls, usage };
}
