/** Compares an upstream's reading with a client's: what was lost, added or changed on the way. */
import type { ChoiceReading, Reading, ToolCall, UsageReading } from './reading.ts';

/** What the request and the policies take out on purpose. */
export interface Comparison {
  shape?: 'chat' | 'text';
  reasoning?: 'pass' | 'strip';
}

const FINISH_WORDS: ReadonlyMap<string, string> = new Map([
  ['length', 'length'],
  ['model_length', 'length'],
  ['max_tokens', 'length'],
  ['content_filter', 'content_filter'],
  ['tool_calls', 'tool_calls'],
  ['function_call', 'tool_calls'],
  ['tool_use', 'tool_calls'],
]);

/** An empty list means that the client got all that the upstream said, and nothing else. */
export function differences(upstream: Reading, client: Reading, comparison: Comparison = {}): string[] {
  const found: string[] = [];
  const indexes = new Set([...upstream.choices.keys(), ...client.choices.keys()]);
  for (const index of [...indexes].sort((one, other) => one - other)) {
    const said = upstream.choices.get(index);
    const got = client.choices.get(index);
    const name = `choice ${index}`;
    if (said === undefined) found.push(`${name}: the upstream has none`);
    else if (got !== undefined) found.push(...choiceDifferences(name, upstream, said, got, comparison));
    else if (saysSomething(said, comparison)) found.push(`${name}: the client has none`);
  }
  if ((upstream.error === null) !== (client.error === null)) {
    found.push(difference('error', upstream.error, client.error));
  }
  return [...found, ...usageDifferences(upstream.usage, client.usage)];
}

function difference(name: string, said: unknown, got: unknown): string {
  return `${name}: upstream ${JSON.stringify(said)}, client ${JSON.stringify(got)}`;
}

/** A choice of which the upstream sent no more than empty deltas need not reach the client. */
function saysSomething(choice: ChoiceReading, { shape, reasoning }: Comparison): boolean {
  if (choice.text !== '' || choice.finish !== null || choice.logprobTokens > 0) return true;
  if (shape === 'text') return false;
  return (
    choice.refusal !== '' || choice.toolCalls.length > 0 || (reasoning !== 'strip' && choice.reasoning !== '')
  );
}

function choiceDifferences(
  name: string,
  upstream: Reading,
  said: ChoiceReading,
  got: ChoiceReading,
  { shape = 'chat', reasoning = 'pass' }: Comparison,
): string[] {
  const chat = shape === 'chat';
  const pairs: [string, unknown, unknown][] = [
    ['text', said.text, got.text],
    ['reasoning', chat && reasoning === 'pass' ? said.reasoning : '', got.reasoning],
    ['refusal', chat ? said.refusal : '', got.refusal],
    ['logprob tokens', said.logprobTokens, got.logprobTokens],
    ['finish', finishOf(upstream, said, got, chat), got.finish],
  ];
  const found = pairs.filter(([, one, other]) => one !== other);
  return [
    ...found.map(([what, one, other]) => difference(`${name} ${what}`, one, other)),
    ...toolCallDifferences(name, chat ? said.toolCalls : [], got.toolCalls),
  ];
}

/** C8's word for the upstream's. A text completion cannot say tool calls: either word is right after them. */
function finishOf(upstream: Reading, said: ChoiceReading, got: ChoiceReading, chat: boolean): string | null {
  if (said.finish === null && upstream.error !== null) return null;
  const word = FINISH_WORDS.get(said.finish ?? 'stop') ?? 'stop';
  if (word !== 'stop' || said.toolCalls.length === 0) return word;
  return chat || got.finish !== 'stop' ? 'tool_calls' : 'stop';
}

function toolCallDifferences(name: string, said: ToolCall[], got: ToolCall[]): string[] {
  if (said.length !== got.length) return [difference(`${name} tool calls`, said, got)];
  return said.flatMap((call, position) => {
    const other = got[position];
    if (other === undefined) return [];
    // An id that the upstream did not give is made, so that there is nothing to compare it with.
    const same = call.name === other.name && call.arguments === other.arguments;
    return same && (call.id === '' || call.id === other.id)
      ? []
      : [difference(`${name} tool call ${position}`, call, other)];
  });
}

/** The client sees no usage that it did not ask for, and an estimate where the upstream told no sum. */
function usageDifferences(said: UsageReading | null, got: UsageReading | null): string[] {
  if (got === null) return [];
  const { prompt = null, completion = null, cached = null, reasoning = null } = said ?? {};
  const total = said?.total ?? (prompt === null || completion === null ? null : prompt + completion);
  const sums: [string, number | null, number | null][] = [
    ['prompt', prompt ?? got.prompt, got.prompt],
    ['completion', completion ?? got.completion, got.completion],
    ['total', total ?? got.total, got.total],
    ['cached', cached, got.cached],
    ['reasoning', reasoning, got.reasoning],
  ];
  const found = sums.filter(([, one, other]) => one !== other);
  return found.map(([name, one, other]) => difference(`usage ${name}`, one, other));
}
