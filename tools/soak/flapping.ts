/** The soak with --flap: one of three targets fails from time to time, and clients must not notice. */
import type { Vars } from '../../test/e2e/gateway.ts';
import { replayOf, type Scenario } from '../../test/e2e/scenarios.ts';
import type { JsonObject } from '../simulator/json.ts';
import { numberOf, objectsOf } from '../simulator/json.ts';
import type { RecordedRequest } from '../simulator/recorded-request.ts';
import type { Replay } from '../simulator/server.ts';
import { answerOf } from './models.ts';
import type { Plan } from './plan.ts';

const FLAPPING = 'deepseek-chat';
/** The flapping target's time limit for its first output. */
const STEP_SECONDS = 3;
/** How late timers are when a thousand streams share a core. */
const LATE_MS = 1000;
/** The longest time that a client may lose on failed targets. */
export const MAX_LOST_MS = STEP_SECONDS * 1000 + LATE_MS;
/** How long the target works, and how long it then fails. */
const PHASE_MS = 3000;

const THREE = [`deepseek/${FLAPPING}`, 'mistral/mistral-small-latest', 'xerotier/llama-3.1-8b'] as const;

export const FLAPPING_PLAN: Plan = {
  kind: 'plain',
  client: 'chat',
  protocol: 'chat',
  model: 'three',
  answers: THREE.map(answerOf),
  status: 'finished',
  piecesBeforeDisconnect: Infinity,
  pauseMs: 0,
};

/** The flapping target is the first of every request. */
export const FLAPPING_VARS: Vars = {
  ALIASES: JSON.stringify({
    three: [{ model: THREE[0], timeout_seconds: STEP_SECONDS }, THREE[1], THREE[2]],
  }),
};

const ROLE = 'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n';
const ERROR = '{"error":{"message":"no","code":"busy"}}';
const GONE: readonly Scenario[] = [
  { status: 503, chunks: [ERROR] },
  { status: 429, headers: { 'retry-after': '60' }, chunks: [ERROR] },
  { chunks: [], ending: 'reset' },
  { chunks: [], ending: 'hang' },
  { chunks: [], ending: 'end' },
  { chunks: [ROLE], ending: 'hang' },
  { chunks: [ROLE], gapMs: 100, ending: 'reset' },
  { chunks: [`data: ${ERROR}\n\n`], ending: 'hang' },
  { headers: { 'content-type': 'text/html' }, chunks: ['<html></html>'] },
];

/** The flapping target's responses while it fails, each kind of failure in turn; undefined: the scene's normal response. */
export function flap(): (request: RecordedRequest) => Replay | undefined {
  const start = Date.now();
  let failures = 0;
  return (request) => {
    const isGone = Math.floor((Date.now() - start) / PHASE_MS) % 2 === 1;
    const scenario = GONE[failures % GONE.length];
    if (!isGone || scenario === undefined || request.body?.model !== FLAPPING) return undefined;
    failures++;
    return replayOf({ [FLAPPING]: scenario })(request);
  };
}

/** How a client noticed the failures, or null. */
export function visibleFault(text: string): string | null {
  const models = new Set(text.match(/"model":"[^"]+"/g));
  if (models.size !== 1) return `chunks of ${models.size} models`;
  const roles = text.match(/"role":"assistant"/g)?.length;
  return roles === 1 ? null : `${roles} roles`;
}

/** The time that each request lost on failed targets, in ms, from its log line. */
export function lostMs(lines: readonly JsonObject[]): number[] {
  return lines.map((line) => failedAttempts(line).reduce((sum, { ms }) => sum + (numberOf(ms) ?? 0), 0));
}

/** @param waits each client's time to the first text, in ms */
export function flapLines(lines: readonly JsonObject[], waits: readonly number[]): string[] {
  const skipped = lines.flatMap(({ attempts }) => objectsOf(attempts)).filter(isSkipped).length;
  return [
    `attempts at the flapping target: ${lines.flatMap(failedAttempts).length} failed, ${skipped} skipped`,
    `time lost on it, ms: ${spread(lostMs(lines))}, allowed ${MAX_LOST_MS}`,
    `time to the first text at the client, ms: ${spread(waits)}`,
  ];
}

function failedAttempts({ attempts }: JsonObject): JsonObject[] {
  return objectsOf(attempts).filter((attempt) => attempt.error_code !== null && !isSkipped(attempt));
}

function isSkipped({ error_code }: JsonObject): boolean {
  return error_code === 'circuit_open';
}

function spread(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b);
  const [median, late, last] = [0.5, 0.99, 1].map((part) => sorted[Math.round(part * (sorted.length - 1))]);
  return `median ${median}, p99 ${late}, longest ${last}`;
}
