/** The soak's clients: so many streams at once until the time is over, each as its plan has it. */
import { setTimeout } from 'node:timers/promises';
import { type Plan, planOf } from './plan.ts';

export interface Load {
  readonly url: string;
  readonly streams: number;
  readonly seconds: number;
  readonly seed: number;
}

/** What one client saw. */
export interface Outcome {
  readonly number: number;
  /** `""` for a client that left before the head. */
  readonly id: string;
  /** What it saw that the contract does not allow, or null. */
  readonly wrong: string | null;
}

/** The clients come within this time: so many connections in one turn would measure the listen queue alone. */
const RAMP_MS = 5000;
/** A client that leaves before the head has had this long to reach the upstream. */
const MAX_EARLY_MS = 1500;

export async function runClients(load: Load, tell: (outcome: Outcome) => void): Promise<void> {
  const until = Date.now() + load.seconds * 1000;
  let started = 0;
  async function runOneByOne(slot: number): Promise<void> {
    await setTimeout((slot / load.streams) * RAMP_MS);
    while (Date.now() < until) {
      const number = started++;
      tell({ number, ...(await runClient(load.url, planOf(load.seed, number))) });
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
  if (plan.kind === 'leaves early') return leaveEarly(answer, client);
  try {
    const response = await answer;
    const id = response.headers.get('x-weir-request-id') ?? '';
    const text = await read(response, plan);
    if (plan.kind === 'leaves') client.abort();
    return { id, wrong: findFault(text, response, plan) };
  } catch (error) {
    return { id: '', wrong: `the connection broke: ${String(error)}` };
  }
}

async function leaveEarly(
  answer: Promise<Response>,
  client: AbortController,
): Promise<Omit<Outcome, 'number'>> {
  const left = setTimeout(MAX_EARLY_MS).then(() => client.abort());
  // A heartbeat may have sent the head before: then there is an id.
  const id = await answer.then(
    (response) => response.headers.get('x-weir-request-id') ?? '',
    () => '',
  );
  await left;
  return { id, wrong: null };
}

async function read(response: Response, plan: Plan): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (text.split('data: ').length > plan.eventsBeforeLeaving) break;
    if (plan.pauseMs > 0) await setTimeout(plan.pauseMs);
  }
  return text;
}

function findFault(text: string, response: Response, plan: Plan): string | null {
  if (plan.kind === 'leaves')
    return text.includes('[DONE]') ? 'the answer ended before its client left' : null;
  const saysError = text.includes('"error"');
  if (saysError !== (plan.kind === 'failing'))
    return `an error where none should be, or none: ${JSON.stringify(text.slice(-160))}`;
  if (!response.ok) return null;
  const frames = text.split('\n\n');
  if (frames.at(-2) !== 'data: [DONE]' || frames.at(-1) !== '')
    return `no [DONE] at its end: ${JSON.stringify(text.slice(-160))}`;
  return saysError || text.includes('"finish_reason":"stop"') ? null : 'no finish before [DONE]';
}
