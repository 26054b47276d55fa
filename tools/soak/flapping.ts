/** The soak in which one of three targets comes and goes: what it does while it is gone, and what its clients may notice of that: nothing. */
import type { Vars } from '../../test/e2e/gateway.ts';
import { type Play, replayOf } from '../../test/e2e/plays.ts';
import type { JsonObject } from '../simulator/json.ts';
import { numberOf, objectsOf } from '../simulator/json.ts';
import type { RecordedRequest, Replay } from '../simulator/server.ts';
import { answerOf } from './models.ts';
import type { Plan } from './plan.ts';

const FLAPPING = 'deepseek-chat';
/** What the flapping target has until its first output. */
const STEP_SECONDS = 3;
/** A timer is that late where a thousand streams share a core. */
const LATE_MS = 1000;
/** The most that a client may lose on targets that were given up. */
export const MAX_LOST_MS = STEP_SECONDS * 1000 + LATE_MS;
/** For so long it is there, and for so long it is gone. */
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

/** Every client meets the flapping one first. */
export const FLAPPING_VARS: Vars = {
  ALIASES: JSON.stringify({
    three: [{ model: THREE[0], timeout_seconds: STEP_SECONDS }, THREE[1], THREE[2]],
  }),
};

const ROLE = 'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n';
const ERROR = '{"error":{"message":"no","code":"busy"}}';
const GONE: readonly Play[] = [
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

/** The flapping target while it is gone, in every way by turns; undefined: its scene's own answer. */
export function flap(): (request: RecordedRequest) => Replay | undefined {
  const start = Date.now();
  let failures = 0;
  return (request) => {
    const isGone = Math.floor((Date.now() - start) / PHASE_MS) % 2 === 1;
    const play = GONE[failures % GONE.length];
    if (!isGone || play === undefined || request.body?.model !== FLAPPING) return undefined;
    failures++;
    return replayOf({ [FLAPPING]: play })(request);
  };
}

/** What a client saw of it, or null. */
export function noticed(text: string): string | null {
  const models = new Set(text.match(/"model":"[^"]+"/g));
  if (models.size !== 1) return `chunks of ${models.size} models`;
  const roles = text.match(/"role":"assistant"/g)?.length;
  return roles === 1 ? null : `${roles} roles`;
}

/** What each request lost on targets that were given up, in ms, as its log line tells. */
export function lostMs(lines: readonly JsonObject[]): number[] {
  return lines.map((line) => failedAttempts(line).reduce((sum, { ms }) => sum + (numberOf(ms) ?? 0), 0));
}

/** @param waits of each client for its first text, in ms */
export function flapLines(lines: readonly JsonObject[], waits: readonly number[]): string[] {
  const skipped = lines.flatMap(({ attempts }) => objectsOf(attempts)).filter(isLeftOut).length;
  return [
    `the flapping target was asked in vain ${lines.flatMap(failedAttempts).length} times, and left out ${skipped} times`,
    `lost on it, ms: ${spread(lostMs(lines))}, allowed ${MAX_LOST_MS}`,
    `first text at the client, ms: ${spread(waits)}`,
  ];
}

function failedAttempts({ attempts }: JsonObject): JsonObject[] {
  return objectsOf(attempts).filter((attempt) => attempt.error_code !== null && !isLeftOut(attempt));
}

function isLeftOut({ error_code }: JsonObject): boolean {
  return error_code === 'circuit_open';
}

function spread(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b);
  const [median, late, last] = [0.5, 0.99, 1].map((part) => sorted[Math.round(part * (sorted.length - 1))]);
  return `median ${median}, p99 ${late}, longest ${last}`;
}
