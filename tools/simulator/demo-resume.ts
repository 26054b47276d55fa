/** Shows a background response whose connection breaks: its client reads the rest where it stopped. */
import type { LoopTotals } from './demo-loop.ts';
import { frames, type GatewayAccess, post } from './demo-stream.ts';
import { decodeObject, type JsonObject, numberOf, objectOf, objectsOf, textOf } from './json.ts';
import { Painter } from './terminal.ts';

const MODEL = 'anthropic/claude-sonnet-5';
const QUESTION = 'What does a weir do?';
/** The events that the client reads before its connection breaks. */
const READ_BEFORE_CUT = 10;
const TIMEOUT_MS = 120_000;

export async function showResume(gateway: GatewayAccess): Promise<LoopTotals> {
  const painter = new Painter();
  painter.whole('prompt', QUESTION);
  const body = { model: MODEL, input: QUESTION, background: true, stream: true };
  const first = await post(gateway, { path: '/v1/responses', body });
  if (!first.ok) throw new Error(`${first.status} ${await first.text()}`);
  const events: JsonObject[] = [];
  // Leaving the loop cancels the body, so the connection breaks.
  for await (const event of eventsOf(first, painter)) if (events.push(event) === READ_BEFORE_CUT) break;
  const { id } = objectOf(events[0]?.response);
  const last = numberOf(events.at(-1)?.sequence_number) ?? 0;
  painter.note(`the connection is cut after event ${last}; the run goes on`);
  const url = `${gateway.url}/v1/responses/${textOf(id)}`;
  const rest = await get(gateway, `${url}?stream=true&starting_after=${last}`);
  for await (const event of eventsOf(rest, painter)) events.push(event);
  const stored = decodeObject(await (await get(gateway, url)).text()) ?? {};
  const usage = objectOf(stored.usage);
  painter.note(
    `GET ?stream=true&starting_after=${last}: events ${last + 1} to ${events.length - 1} · ${textOf(stored.status)} · ${usage.input_tokens} + ${usage.output_tokens} tokens`,
  );
  return {
    requests: 1,
    promptTokens: numberOf(usage.input_tokens) ?? 0,
    completionTokens: numberOf(usage.output_tokens) ?? 0,
    failures: differences(events, stored),
  };
}

function get({ key }: GatewayAccess, url: string): Promise<Response> {
  return fetch(url, {
    headers: { authorization: `Bearer ${key}` },
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
}

async function* eventsOf({ body }: Response, painter: Painter): AsyncGenerator<JsonObject> {
  for await (const frame of frames(body)) {
    const event = decodeObject(frame.slice(frame.indexOf('data: ') + 'data: '.length));
    if (event === undefined) continue;
    if (event.type === 'response.output_text.delta') painter.paint('text', textOf(event.delta));
    yield event;
  }
}

/** Every event was read once, and their texts are the stored output. */
function differences(events: readonly JsonObject[], stored: JsonObject): string[] {
  const numbers = events.map((event) => event.sequence_number).join();
  const text = events
    .filter(({ type }) => type === 'response.output_text.delta')
    .map(({ delta }) => textOf(delta))
    .join('');
  const output = objectsOf(stored.output)
    .flatMap(({ content }) => objectsOf(content))
    .map((part) => textOf(part.text))
    .join('');
  return [
    ...(numbers === events.map((_, index) => index).join() ? [] : [`the events are numbered ${numbers}`]),
    ...(text === output && text !== '' ? [] : [`the events have the text ${text}, the response ${output}`]),
    ...(events.length > READ_BEFORE_CUT ? [] : ['no event followed the cut']),
  ];
}
