/** Compares the readings of an upstream's and a client's stream: what was lost, added or changed. */

import type {
  ChoiceContent,
  Content,
  ToolCall,
  UsageContent,
} from '../../tools/conformance/contract/content.ts';
import type { JsonObject } from '../../tools/conformance/contract/json.ts';

/** What the request and the policies remove intentionally. */
export interface Comparison {
  shape?: 'chat' | 'text';
  reasoning?: 'pass' | 'strip';
  /** `finish`: the client gets usage only on the last finish, if it was reported by then (U2). */
  usage?: 'end' | 'finish';
}

/** The keys of a reasoning detail's text. */
const DETAIL_TEXTS = ['text', 'summary'];
/** An id that Weir generates (C7). */
const MADE_ID = /^[0-9A-Za-z]{9}$/;

const FINISH_WORDS: ReadonlyMap<string, string> = new Map([
  ['length', 'length'],
  ['model_length', 'length'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['pause_turn', 'length'],
  ['compaction', 'length'],
  ['content_filter', 'content_filter'],
  ['refusal', 'content_filter'],
  ['tool_calls', 'tool_calls'],
  ['function_call', 'tool_calls'],
  ['tool_use', 'tool_calls'],
]);

/** An empty list means that the client received everything that the upstream sent, and nothing else. */
export function differences(upstream: Content, client: Content, comparison: Comparison = {}): string[] {
  const found: string[] = [];
  const indexes = new Set([...upstream.choices.keys(), ...client.choices.keys()]);
  for (const index of [...indexes].sort((one, other) => one - other)) {
    const sent = upstream.choices.get(index);
    const received = client.choices.get(index);
    const name = `choice ${index}`;
    if (sent === undefined) found.push(`${name}: the upstream has none`);
    else if (received !== undefined)
      found.push(...choiceDifferences(name, upstream, sent, received, comparison));
    else if (hasContent(sent, comparison)) found.push(`${name}: the client has none`);
  }
  if ((upstream.error === null) !== (client.error === null)) {
    found.push(difference('error', upstream.error, client.error));
  }
  if (comparison.usage === 'finish') return [...found, ...usageByFinishDifferences(upstream, client)];
  return [...found, ...usageDifferences(upstream.usage, client.usage)];
}

function difference(name: string, sent: unknown, received: unknown): string {
  return `${name}: upstream ${JSON.stringify(sent)}, client ${JSON.stringify(received)}`;
}

/** A choice with only empty deltas need not reach the client. */
function hasContent(choice: ChoiceContent, { shape, reasoning }: Comparison): boolean {
  if (choice.text !== '' || choice.finish !== null || choice.logprobTokens > 0) return true;
  if (shape === 'text') return false;
  if (choice.refusal !== '' || choice.toolCalls.length > 0) return true;
  return detailsOf(choice, reasoning).length > 0 || (reasoning !== 'strip' && choice.reasoning !== '');
}

/** The reasoning details that the client gets. If they are stripped: those that the upstream accepts without a text. */
function detailsOf({ details }: ChoiceContent, reasoning: Comparison['reasoning']): JsonObject[] {
  if (reasoning !== 'strip') return details;
  return details
    .filter(({ signature, data, text }) =>
      typeof data === 'string' ? true : typeof signature === 'string' && (text ?? '') === '',
    )
    .map((detail) =>
      Object.fromEntries(Object.entries(detail).filter(([key]) => !DETAIL_TEXTS.includes(key))),
    );
}

function choiceDifferences(
  name: string,
  upstream: Content,
  sent: ChoiceContent,
  received: ChoiceContent,
  { shape = 'chat', reasoning = 'pass' }: Comparison,
): string[] {
  const chat = shape === 'chat';
  const pairs: [string, unknown, unknown][] = [
    ['text', sent.text, received.text],
    ['reasoning', chat && reasoning === 'pass' ? sent.reasoning : '', received.reasoning],
    ['refusal', chat ? sent.refusal : '', received.refusal],
    [
      'reasoning details',
      JSON.stringify(chat ? detailsOf(sent, reasoning) : []),
      JSON.stringify(received.details),
    ],
    ['logprob tokens', sent.logprobTokens, received.logprobTokens],
    ['finish', finishOf(upstream, sent, received, chat), received.finish],
  ];
  const found = pairs.filter(([, one, other]) => one !== other);
  return [
    ...found.map(([what, one, other]) => difference(`${name} ${what}`, one, other)),
    ...toolCallDifferences(name, chat ? sent.toolCalls : [], received.toolCalls),
  ];
}

/** The finish reason that C8 demands for the upstream's. A text completion cannot contain tool calls, so both are valid after them. */
function finishOf(
  upstream: Content,
  sent: ChoiceContent,
  received: ChoiceContent,
  chat: boolean,
): string | null {
  if (sent.finish === null && upstream.error !== null) return null;
  const word = FINISH_WORDS.get(sent.finish ?? 'stop') ?? 'stop';
  if (word !== 'stop' || sent.toolCalls.length === 0) return word;
  return chat || received.finish !== 'stop' ? 'tool_calls' : 'stop';
}

function toolCallDifferences(name: string, sent: ToolCall[], received: ToolCall[]): string[] {
  if (sent.length !== received.length) return [difference(`${name} tool calls`, sent, received)];
  return sent.flatMap((call, position) => {
    const other = received[position];
    if (other === undefined) return [];
    const isSame =
      call.name === other.name &&
      call.arguments === other.arguments &&
      JSON.stringify(call.extra) === JSON.stringify(other.extra) &&
      // An id that the upstream did not send is generated: only its form is known.
      (call.id === '' ? MADE_ID.test(other.id) : call.id === other.id);
    return isSame ? [] : [difference(`${name} tool call ${position}`, call, other)];
  });
}

/** Usage that was not requested is sent if both sums were reported by the last finish. Estimates are not sent. */
function usageByFinishDifferences(upstream: Content, client: Content): string[] {
  const { prompt = null, completion = null, total = null } = upstream.usageByFinish ?? {};
  const sums = [prompt, completion, total].filter((sum) => sum !== null);
  const isDue = upstream.error === null && sums.length > 1;
  if (isDue !== (client.usage !== null)) return [difference('usage', upstream.usageByFinish, client.usage)];
  return usageDifferences(upstream.usageByFinish, client.usage);
}

/** A client never gets more cached tokens than its prompt has. */
function within(prompt: number | null, part: number | null, before: number | null = 0): number | null {
  return part === null || prompt === null ? part : Math.max(0, Math.min(part, prompt - (before ?? 0)));
}

/** An estimate for a sum that the upstream did not report is not a difference. */
function usageDifferences(sent: UsageContent | null, received: UsageContent | null): string[] {
  if (received === null) return [];
  const { prompt = null, completion = null, cached = null, cacheWrite = null, reasoning = null } = sent ?? {};
  const total = sent?.total ?? (prompt === null || completion === null ? null : prompt + completion);
  const sums: [string, number | null, number | null][] = [
    ['prompt', prompt ?? received.prompt, received.prompt],
    ['completion', completion ?? received.completion, received.completion],
    ['total', total ?? received.total, received.total],
    ['cached', within(received.prompt, cached), received.cached],
    ['cache write', within(received.prompt, cacheWrite, cached), received.cacheWrite],
    ['reasoning', reasoning, received.reasoning],
  ];
  const found = sums.filter(([, one, other]) => one !== other);
  return found.map(([name, one, other]) => difference(`usage ${name}`, one, other));
}
