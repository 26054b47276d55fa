/** The soak's clients: so many streams at once until the time is over, each following its plan. */
import { setTimeout } from 'node:timers/promises';
import { type Plan, planOf } from './plan.ts';

export interface Load {
  readonly url: string;
  readonly streams: number;
  readonly seconds: number;
  readonly seed: number;
}

/** The result of one client. */
export interface Outcome {
  readonly number: number;
  /** `""` for a client that disconnected before the head. */
  readonly id: string;
  /** What the contract does not allow in its answer, or null. */
  readonly fault: string | null;
}

/** The clients start within this time: so many connections at once would measure only the listen queue. */
const RAMP_MS = 5000;
/** A client that disconnects before the head has this long to reach the upstream. */
const MAX_EARLY_MS = 1500;

export async function runClients(load: Load, report: (outcome: Outcome) => void): Promise<void> {
  const until = Date.now() + load.seconds * 1000;
  let started = 0;
  async function runOneByOne(slot: number): Promise<void> {
    await setTimeout((slot / load.streams) * RAMP_MS);
    while (Date.now() < until) {
      const number = started++;
      report({ number, ...(await runClient(load.url, planOf(load.seed, number))) });
    }
  }
  await Promise.all(Array.from({ length: load.streams }, (_, slot) => runOneByOne(slot)));
}

async function runClient(url: string, plan: Plan): Promise<Omit<Outcome, 'number'>> {
  const client = new AbortController();
  const messages = [{ role: 'user', content: 'Hello there' }];
  const answer = fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: plan.model, stream: true, messages }),
    signal: client.signal,
  });
  if (plan.kind === 'disconnects early') return disconnectEarly(answer, client);
  try {
    const response = await answer;
    const id = response.headers.get('x-weir-request-id') ?? '';
    const text = await read(response, plan);
    if (plan.kind === 'disconnects') client.abort();
    return { id, fault: findFault(text, response, plan) };
  } catch (error) {
    return { id: '', fault: `the connection broke: ${String(error)}` };
  }
}

async function disconnectEarly(
  answer: Promise<Response>,
  client: AbortController,
): Promise<Omit<Outcome, 'number'>> {
  const disconnected = setTimeout(MAX_EARLY_MS).then(() => client.abort());
  // A heartbeat may have sent the head before: then there is an id.
  const id = await answer.then(
    (response) => response.headers.get('x-weir-request-id') ?? '',
    () => '',
  );
  await disconnected;
  return { id, fault: null };
}

async function read(response: Response, plan: Plan): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (text.split('data: ').length > plan.eventsBeforeDisconnect) break;
    if (plan.pauseMs > 0) await setTimeout(plan.pauseMs);
  }
  return text;
}

function findFault(text: string, response: Response, plan: Plan): string | null {
  if (plan.kind === 'disconnects')
    return text.includes('[DONE]') ? 'the answer ended before its client disconnected' : null;
  const hasError = text.includes('"error"');
  if (hasError !== (plan.kind === 'failing'))
    return `an unexpected error, or a missing one: ${JSON.stringify(text.slice(-160))}`;
  if (!response.ok) return null;
  const frames = text.split('\n\n');
  if (frames.at(-2) !== 'data: [DONE]' || frames.at(-1) !== '')
    return `no [DONE] at its end: ${JSON.stringify(text.slice(-160))}`;
  return hasError || text.includes('"finish_reason":"stop"') ? null : 'no finish before [DONE]';
}
