/** Reads one canonical stream like a client, prints it as it arrives, and reports differences from the expected result. */
import type { Example } from './demo-examples.ts';
import { decodeObject, type JsonObject, numberOf, objectOf, objectsOf, textOf } from './json.ts';
import { Painter, type Part } from './terminal.ts';

/** Ends the demo if the gateway sends nothing. */
const TIMEOUT_MS = 120_000;

/** The gateway's URL, and the key for its requests. */
export interface GatewayAccess {
  readonly url: string;
  readonly key: string;
}

/** The result of a stream. */
interface Outcome {
  readonly parts: Set<Part>;
  readonly finishes: string[];
  readonly dones: number;
  readonly usage: JsonObject | undefined;
}

/** Returns the differences from the expected result; empty if there are none. */
export async function show(gateway: GatewayAccess, example: Example): Promise<string[]> {
  const painter = new Painter();
  const started = performance.now();
  const prompt = textOf(example.body.prompt) || textOf(objectsOf(example.body.messages).at(-1)?.content);
  painter.whole('prompt', prompt.trimEnd());
  const response = await post(gateway, example);
  if (!response.ok || !response.body) {
    painter.whole('error', `${response.status} ${await response.text()}`);
    return [`the status is ${response.status}`];
  }
  const seen = {
    parts: new Set<Part>(),
    finishes: [] as string[],
    dones: 0,
    usage: undefined as JsonObject | undefined,
  };
  let first: number | undefined;
  for await (const frame of frames(response.body)) {
    if (frame === 'data: [DONE]') seen.dones += 1;
    const chunk = frame.startsWith('data: ') ? decodeObject(frame.slice('data: '.length)) : undefined;
    if (!chunk) continue;
    if (seen.dones > 0) return ['data after [DONE]'];
    first ??= performance.now() - started;
    for (const [part, text] of partsOf(chunk)) {
      seen.parts.add(part);
      if (part === 'event' || part === 'error') painter.whole(part, text);
      else painter.paint(part, text);
    }
    seen.finishes.push(
      ...objectsOf(chunk.choices)
        .map((choice) => textOf(choice.finish_reason))
        .filter(Boolean),
    );
    if (chunk.usage) seen.usage = objectOf(chunk.usage);
  }
  painter.note(summary(seen, first ?? 0, performance.now() - started));
  return differences(seen, example);
}

export function post(
  { url, key }: GatewayAccess,
  { path, headers, body }: Pick<Example, 'path' | 'headers' | 'body'>,
) {
  const all = { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...headers };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  return fetch(url + path, { method: 'POST', headers: all, body: JSON.stringify(body), signal });
}

/** A frame ends with an empty line. Weir writes LF only. */
export async function* frames(body: AsyncIterable<Uint8Array> | null): AsyncGenerator<string> {
  if (!body) return;
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of body) {
    const pieces = (rest + decoder.decode(bytes, { stream: true })).split('\n\n');
    rest = pieces.pop() ?? '';
    yield* pieces;
  }
  if (rest) yield rest;
}

function partsOf(chunk: JsonObject): [Part, string][] {
  if (chunk.error !== undefined) return [['error', JSON.stringify(chunk.error)]];
  if (textOf(chunk.type).startsWith('x_')) return [['event', JSON.stringify(chunk)]];
  return objectsOf(chunk.choices).flatMap((choice): [Part, string][] => {
    const delta = objectOf(choice.delta);
    const parts: [Part, string][] = [
      ['reasoning', textOf(delta.reasoning_content)],
      ['text', textOf(delta.content) + textOf(choice.text)],
      ['refusal', textOf(delta.refusal)],
      ...objectsOf(delta.tool_calls).map((call): [Part, string] => ['call', callText(call)]),
    ];
    return parts.filter(([, text]) => text !== '');
  });
}

function callText(fragment: JsonObject): string {
  const { name, arguments: text } = objectOf(fragment.function);
  const between = numberOf(fragment.index) === 0 ? '' : '\n';
  return name === undefined ? textOf(text) : `${between}${textOf(name)} ${textOf(text)}`;
}

function summary(seen: Outcome, first: number, all: number): string {
  const usage = seen.usage;
  const reasoning = numberOf(objectOf(usage?.completion_tokens_details).reasoning_tokens);
  const tokens = usage ? `${usage.prompt_tokens} + ${usage.completion_tokens} tokens` : 'no usage';
  const times = `first chunk after ${Math.round(first)} ms, ${Math.round(all)} ms in total`;
  return [seen.finishes.join(), tokens + (reasoning ? `, ${reasoning} of reasoning` : ''), times].join(' · ');
}

function differences(seen: Outcome, { expected }: Example): string[] {
  const { finish, promptTokens, completionTokens, parts } = expected;
  const checks: [string, unknown, unknown][] = [
    ['finish', seen.finishes.join(), finish],
    ['[DONE]', seen.dones, 1],
    ['parts', [...seen.parts].join(), parts.join()],
    ['prompt tokens', seen.usage?.prompt_tokens, promptTokens],
    ['completion tokens', seen.usage?.completion_tokens, completionTokens],
  ];
  const failed = checks.filter(([, actual, wanted]) => actual !== wanted);
  return failed.map(([name, actual, wanted]) => `${name}: ${String(actual)}, expected ${String(wanted)}`);
}
