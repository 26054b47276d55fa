/** The soak's clients: a fixed number of concurrent streams until the time is over, each with its plan. */
import { setTimeout } from 'node:timers/promises';
import { FLAPPING_PLAN, visibleFault } from './flapping.ts';
import { type Answer, providerOf } from './models.ts';
import { type ClientName, type Plan, planOf } from './plan.ts';
import { PROMPT_TOKENS, PROTOCOLS, type ReadOutput, refusalFault } from './protocols.ts';

export interface Load {
  readonly url: string;
  readonly streams: number;
  readonly seconds: number;
  readonly seed: number;
  readonly clients: readonly ClientName[];
  /** One of three targets fails from time to time, and every client must receive a complete response. */
  readonly flaps: boolean;
}

/** The result of one client. */
export interface Outcome {
  readonly number: number;
  /** `""` for a client that disconnected before the head. */
  readonly id: string;
  /** How the response breaks the contract, or null. */
  readonly fault: string | null;
  /** Time from the request to the first text; null without text. */
  readonly firstTextMs: number | null;
  /** When it disconnected, in ms since 1970; null if it read to the end. */
  readonly leftAt: number | null;
}

export function planIn({ seed, clients, flaps }: Load, number: number): Plan {
  return flaps ? FLAPPING_PLAN : planOf(seed, number, clients);
}

/** The clients start spread over this time. Starting all at once would only measure the listen queue. */
const RAMP_MS = 5000;
/** A client that disconnects before the response head waits at most this long, so that its request reaches the upstream. */
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
  const { path, body } = PROTOCOLS[plan.protocol];
  const answer = fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body(plan.model)),
    signal: client.signal,
  });
  if (plan.kind === 'disconnects early') return disconnectEarly(answer, client);
  try {
    const response = await answer;
    const id = response.headers.get('x-weir-request-id') ?? '';
    const { text, firstTextAt } = await read(response, plan);
    const firstTextMs = firstTextAt === null ? null : firstTextAt - askedAt;
    if (plan.kind === 'disconnects') client.abort();
    const leftAt = plan.kind === 'disconnects' ? Date.now() : null;
    const fault = findFault(text, response, plan) ?? (flaps ? visibleFault(text) : null);
    return { id, fault, firstTextMs, leftAt };
  } catch (error) {
    return { id: '', fault: `the connection broke: ${String(error)}`, firstTextMs: null, leftAt: null };
  }
}

async function disconnectEarly(
  answer: Promise<Response>,
  client: AbortController,
): Promise<Omit<Outcome, 'number'>> {
  const disconnected = setTimeout(MAX_EARLY_MS).then(() => client.abort());
  // A heartbeat may already have sent the head. Then there is an id.
  const id = await answer.then(
    (response) => response.headers.get('x-weir-request-id') ?? '',
    () => '',
  );
  await disconnected;
  return { id, fault: null, firstTextMs: null, leftAt: Date.now() };
}

async function read(response: Response, plan: Plan): Promise<{ text: string; firstTextAt: number | null }> {
  const decoder = new TextDecoder();
  const { piece } = PROTOCOLS[plan.protocol];
  let text = '';
  let firstTextAt: number | null = null;
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    const pieces = text.match(piece)?.length ?? 0;
    if (pieces > 0) firstTextAt ??= Date.now();
    if (pieces >= plan.piecesBeforeDisconnect) break;
    if (plan.pauseMs > 0) await setTimeout(plan.pauseMs);
  }
  return { text, firstTextAt };
}

function findFault(text: string, response: Response, plan: Plan): string | null {
  const { kind, model, client, answers, protocol } = plan;
  const reader = PROTOCOLS[protocol];
  if (!response.ok) {
    if (kind !== 'failing') return `refused: ${response.status} ${text.slice(0, 160)}`;
    return refusalFault(reader, response.status, text);
  }
  const isWhole = kind !== 'disconnects';
  const [, served = ''] = /"model":"([^"]+)"/.exec(text) ?? [];
  const provider = providerOf(answers.length === 1 ? model : served);
  const [broken] = reader.faults(text, { provider, isWhole, isPassthrough: client === 'passthrough' });
  if (broken !== undefined) return `${broken}; its end: ${JSON.stringify(text.slice(-160))}`;
  const output = reader.read(text);
  if (output.hasError !== (kind === 'failing'))
    return `an unexpected error, or a missing one: ${text.slice(-160)}`;
  const isRight = kind === 'failing' || !isWhole ? isBeginningOf : isOutputOf;
  return answers.some((answer) => isRight(output, answer))
    ? null
    : `unexpected output ${JSON.stringify(output)}`;
}

function isOutputOf(output: ReadOutput, { text, reasoning, completionTokens }: Answer): boolean {
  return (
    output.text === text &&
    output.reasoning === reasoning &&
    output.promptTokens === PROMPT_TOKENS &&
    output.completionTokens === completionTokens
  );
}

function isBeginningOf(output: ReadOutput, { text, reasoning }: Answer): boolean {
  return text.startsWith(output.text) && reasoning.startsWith(output.reasoning);
}
