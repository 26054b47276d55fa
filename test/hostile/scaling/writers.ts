/** Runs the gateway's steps from a request body to the upstream body, and measures the time of each step. */
import { readFileSync } from 'node:fs';
import { ReplayableRequest } from '../../../src/completion/replayable-request.ts';
import type { TargetRequest } from '../../../src/completion/target-request.ts';
import { LearnedRefusals } from '../../../src/fitting/learned.ts';
import { MAX_BODY_FIELDS } from '../../../src/http/request.ts';
import { findUsageUpperBound } from '../../../src/ledger/limits/usage-upper-bound.ts';
import { estimatePromptTokens } from '../../../src/metering/estimate.ts';
import { messages } from '../../../src/protocols/anthropic-messages/client.ts';
import { chat, completions, fim } from '../../../src/protocols/openai-chat/client.ts';
import { responses } from '../../../src/protocols/openai-responses/client.ts';
import type { ClientProtocol, ClientRequest } from '../../../src/protocols/shared/client-protocol.ts';
import { PROFILES } from '../../../src/providers/index.ts';
import type { Route } from '../../../src/providers/provider.ts';
import type { Target } from '../../../src/routing/targets.ts';
import { isObject, isWithinJsonBounds, type JsonObject, parseJsonExactly } from '../../../src/shared/json.ts';
import { PAUSED_BYTES, SMALL_GRANT } from '../../../src/stream/memory.ts';
import { classifyRefusal } from '../../../src/upstream/errors.ts';
import { DEFAULT_POLICIES } from '../../canonical/default-policies.ts';
import { settingsWith, targetsOf } from '../../routing/targets.ts';
import { refusalOf, SHORT_REFUSAL } from '../attacks/refusals.ts';
import type { Sample } from './samples.ts';

const MAX_REQUEST_BYTES = 10 * 1024 * 1024;

/** The outcome of one body. */
export interface Written {
  readonly outcome: 'sent' | 'refused' | 'beyond the bounds';
  /** The error message, or `""`. */
  readonly why: string;
  /** The longest CPU time between two yields, in ms, and the steps in it. */
  readonly ranMs: number;
  readonly did: string;
  readonly cameBytes: number;
  readonly leftBytes: number;
  /** Characters that live as long as the response: the echoed request, tool names, and reported names. */
  readonly heldChars: number;
  readonly names: number;
  /** The longest CPU time between two yields, where the upstream refuses the body in few words, and where it names what the body has. */
  readonly refusedMs?: readonly [control: number, named: number];
  /** The upstream body. */
  readonly json?: string;
}

/** A body after reading, and the time for it. */
export interface Read {
  readonly sample: Sample;
  readonly cameBytes: number;
  readonly sent: JsonObject;
  readonly client: ClientProtocol<unknown>;
  readonly request: ClientRequest<unknown>;
  readonly watch: Stopwatch;
}

const settings = settingsWith({
  GEMINI_API_KEY: 'g',
  PROVIDERS: JSON.stringify(
    Object.fromEntries(
      PROFILES.map(({ id }) => [`like-${id}`, { base_url: `https://${id}.example/v1`, like: id }]),
    ),
  ),
});

/** A target for every writer: one provider of each profile. */
export function targetsFor(route: Route): Target[] {
  return PROFILES.flatMap(({ id, endpoints }) =>
    endpoints[route] === undefined ? [] : targetsOf([`like-${id}/${modelOf(id)}`], { settings, route }),
  );
}

/** A model of the family with the most work. */
function modelOf(id: string): string {
  if (id === 'anthropic') return 'claude-sonnet-4-5';
  if (id === 'gemini' || id === 'gemini-compatible') return 'gemini-3-pro-preview';
  return id === 'mistral' ? 'magistral-medium-latest' : 'm';
}

/** The CPU time of this thread in ms, without waits for a processor. */
function ranMs(): number {
  return Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[0]) / 1e6;
}

/** Measures the work between two yields. A small body has no yields. */
class Stopwatch {
  longestMs = 0;
  longest = '';
  readonly #yields: boolean;
  readonly #beforeMs: number;
  #names: string[] = [];
  readonly #now: () => number;
  #from: number;

  /**
   * @param before earlier work that counts, if the body is small
   * @param now the clock, which takes longer than the work on a small body
   */
  constructor(bytes: number, before?: Stopwatch, now = before?.now ?? ranMs) {
    this.#now = now;
    this.#from = now();
    this.#yields = bytes > PAUSED_BYTES;
    this.#beforeMs = before === undefined || this.#yields ? 0 : before.longestMs;
  }

  get now(): () => number {
    return this.#now;
  }

  /** Records the step that ended now. */
  did(name: string): void {
    this.#names.push(name);
    const ms = this.#now() - this.#from + this.#beforeMs;
    if (ms > this.longestMs) [this.longestMs, this.longest] = [ms, this.#names.join(', ')];
    if (!this.#yields) return;
    this.#names = [];
    this.#from = this.#now();
  }
}

function clientOf({ protocol, route }: Sample): ClientProtocol<unknown> {
  if (protocol === 'messages') return messages;
  if (protocol === 'responses') return responses;
  return route === 'completions' ? completions : route === 'fim' ? fim : chat;
}

const NOTHING = { outcome: 'refused', why: '', leftBytes: 0, heldChars: 0, names: 0 } as const;

/** Reads the body and counts its tokens, like `count_tokens` and `input_tokens`. Returns the read body, or its outcome. */
export function read(text: string, sample: Sample, now = ranMs): Read | Written {
  const cameBytes = Buffer.byteLength(text);
  const watch = new Stopwatch(cameBytes, undefined, now);
  const ended = (own: Partial<Written>): Written => ({
    ...{ ...NOTHING, cameBytes, ranMs: watch.longestMs, did: watch.longest },
    ...own,
  });
  const isWithin = cameBytes <= MAX_REQUEST_BYTES && isWithinJsonBounds(text);
  watch.did('bounds');
  if (!isWithin) return ended({ outcome: 'beyond the bounds' });
  const sent = parseJsonExactly(text);
  watch.did('parse');
  if (!isObject(sent)) return ended({ why: 'no object' });
  if (Object.keys(sent).length > MAX_BODY_FIELDS) return ended({ outcome: 'beyond the bounds' });
  const client = clientOf(sample);
  const read = client.readRequest(sent);
  watch.did('read');
  if (read.kind === 'error') return ended({ why: read.error.message });
  const request = read.value;
  estimatePromptTokens(sent);
  watch.did('estimate');
  return { sample, cameBytes, sent, client, request, watch };
}

/**
 * Writes the body for the target and computes its upper bound, as for a key with limits.
 * @param isRefused the target refuses it, if it is one of each form of a request
 */
export async function write(
  { sample, cameBytes, sent, client, request, watch: before }: Read,
  target: Target,
  isRefused = false,
) {
  const watch = new Stopwatch(cameBytes, before);
  let running = watch;
  const grant = { ...SMALL_GRANT, pause: async () => running.did('write') };
  const { session, ...canonical } = request;
  const clientBody = {
    ...{ ...canonical, clientBody: sent, clientBodyBytes: cameBytes, grant },
    client: { passthrough: client.passthrough ?? null },
  };
  const held = new ReplayableRequest(clientBody, {
    context: { settings, upstreams: { learned: new LearnedRefusals() }, ports: { clock: { now: () => 0 } } },
    route: sample.route,
    headers: new Headers(),
    callerPays: false,
    caller: { keyId: 'k' },
    session: null,
    policies: DEFAULT_POLICIES,
    unsupported: 'drop',
  });
  const written = await held.writeFor(target);
  watch.did('write');
  const ended = (own: Partial<Written>): Written => ({
    ...{ ...NOTHING, cameBytes, ranMs: watch.longestMs, did: watch.longest },
    ...own,
  });
  if (written.kind === 'error') return ended({ why: written.error.message });
  await findUsageUpperBound([target], written.value, held);
  watch.did('ceiling');
  const { json, traits, body } = written.value;
  const refusedMs = async (refusal: string) => {
    // The response comes in a turn of its own.
    const own = new Stopwatch(cameBytes, undefined, watch.now);
    running = own;
    await refuse(held, written.value, refusal, own);
    return Math.max(own.longestMs, watch.longestMs);
  };
  const names = [...traits.dropped, ...traits.changed];
  return ended({
    outcome: 'sent',
    leftBytes: Buffer.byteLength(json),
    heldChars: charsOf([session, names, traits.toolNames]),
    names: names.length,
    ...(isRefused && REFUSED_AT.test(target.address)
      ? { refusedMs: [await refusedMs(SHORT_REFUSAL), await refusedMs(refusalOf(body))] as const }
      : {}),
    json,
  });
}

/** One target of each form of a request. */
const REFUSED_AT = /^like-(?:anthropic|gemini-native|mistral|openai)\//;
const REFUSING = { name: 'Provider', secret: 'key-of-it', refusals: undefined, callerPays: false };

/** What a refusal makes Weir do, up to the changed request that would be sent. */
async function refuse(
  held: ReplayableRequest,
  sent: TargetRequest,
  body: string,
  watch: Stopwatch,
): Promise<void> {
  const { secondTries } = held;
  const { target } = sent.traits;
  secondTries.sent(sent);
  const error = classifyRefusal({ status: 400, body }, REFUSING);
  if (error.refusal === undefined) throw new Error('There is no refusal');
  secondTries.providerMessage(sent.traits, error.refusal, REFUSING);
  const mending = secondTries.readRefusal(sent.traits, error.refusal);
  const isChanged = mending !== null && secondTries.tryAgain(target, mending, error);
  watch.did('refusal');
  if (isChanged) await held.writeFor(target);
  watch.did('second try');
}

function charsOf(value: unknown): number {
  if (value instanceof Map) return charsOf([...value]);
  if (typeof value !== 'object' || value === null) return typeof value === 'string' ? value.length : 0;
  return Object.values(value).reduce<number>((sum, inner) => sum + charsOf(inner) + 8, 0);
}
