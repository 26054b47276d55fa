/** The soak's clients: so many streams at once until the time is over, each following its plan. */
import { setTimeout } from 'node:timers/promises';
import { FLAPPING_PLAN, noticed } from './flapping.ts';
import { type Plan, planOf } from './plan.ts';

export interface Load {
  readonly url: string;
  readonly streams: number;
  readonly seconds: number;
  readonly seed: number;
  /** One of three targets comes and goes, and all clients want a whole answer. */
  readonly flaps: boolean;
}

/** The result of one client. */
export interface Outcome {
  readonly number: number;
  /** `""` for a client that disconnected before the head. */
  readonly id: string;
  /** What the contract does not allow in its answer, or null. */
  readonly fault: string | null;
  /** From its request to the first text, or null where none came. */
  readonly firstTextMs: number | null;
}

export function planIn({ seed, flaps }: Load, number: number): Plan {
  return flaps ? FLAPPING_PLAN : planOf(seed, number);
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
      report({ number, ...(await runClient(load, planIn(load, number))) });
    }
  }
  await Promise.all(Array.from({ length: load.streams }, (_, slot) => runOneByOne(slot)));
}

async function runClient({ url, flaps }: Load, plan: Plan): Promise<Omit<Outcome, 'number'>> {
  const askedAt = Date.now();
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
    const { text, firstTextAt } = await read(response, plan);
    const firstTextMs = firstTextAt === null ? null : firstTextAt - askedAt;
    if (plan.kind === 'disconnects') client.abort();
    const fault = findFault(text, response, plan) ?? (flaps ? noticed(text) : null);
    return { id, fault, firstTextMs };
  } catch (error) {
    return { id: '', fault: `the connection broke: ${String(error)}`, firstTextMs: null };
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
  return { id, fault: null, firstTextMs: null };
}

const FIRST_TEXT = /"(?:content|reasoning_content)":"[^"]/;

async function read(response: Response, plan: Plan): Promise<{ text: string; firstTextAt: number | null }> {
  const decoder = new TextDecoder();
  let text = '';
  let firstTextAt: number | null = null;
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (firstTextAt === null && FIRST_TEXT.test(text)) firstTextAt = Date.now();
    if (text.split('data: ').length > plan.eventsBeforeDisconnect) break;
    if (plan.pauseMs > 0) await setTimeout(plan.pauseMs);
  }
  return { text, firstTextAt };
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
