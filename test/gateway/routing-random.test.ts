/** Random failures over random lists of targets: always one complete response or one error, and no leaks (R4-R9). */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { UsageRecord } from '../../src/metering/record.ts';
import { runsOf } from '../random-run.ts';
import { FakeTracing } from './fake-tracing.ts';
import {
  type Behavior,
  DONE,
  event,
  type Got,
  json,
  ROLE,
  RoutedGateway,
  read,
  refuse,
  settle,
  sse,
  TIMER_MS,
  type UpstreamRequest,
} from './upstreams.ts';

/** What one request gets. `begins`: it has output, after which no other target may be tried. */
interface Meeting {
  readonly name: string;
  readonly begins: boolean;
  readonly behavior: (text: string, isStreamed: boolean) => Behavior;
}

const EVENTS = 'text/event-stream';
const ERROR = 'data: {"error":{"message":"no","code":"busy"}}\n\n';

/** A stream that has begun. That is output for a streaming and for a non-streaming client. */
const begun = (name: string, ending: 'cut' | 'hang' | 'end', ...more: string[]): Meeting => ({
  name,
  begins: true,
  behavior: (text) => ({
    kind: 'answer',
    type: EVENTS,
    pieces: [ROLE, event({ content: text }), ...more],
    ending,
  }),
});

const early = (name: string, behavior: Behavior): Meeting => ({
  name,
  begins: false,
  behavior: () => behavior,
});

const MEETINGS: readonly Meeting[] = [
  {
    name: 'answers',
    begins: true,
    behavior: (text, isStreamed) =>
      isStreamed
        ? sse(ROLE, event({ content: text }), event({}, 'stop'), DONE)
        : json({
            choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
          }),
  },
  {
    name: 'has no text',
    begins: true,
    behavior: (_, isStreamed) =>
      isStreamed
        ? sse(ROLE, event({}, 'stop'), DONE)
        : json({
            choices: [{ index: 0, message: { role: 'assistant', content: '' }, finish_reason: 'stop' }],
          }),
  },
  begun('is cut', 'cut'),
  begun('hangs after output', 'hang'),
  begun('fails after output', 'hang', ERROR),
  {
    name: 'has output and fails in one read',
    begins: true,
    behavior: (text) => sse(ROLE + event({ content: text }) + ERROR),
  },
  early('unreachable', { kind: 'unreachable' }),
  early('hangs', { kind: 'hang' }),
  ...[400, 401, 404, 408, 429, 500, 503].map((status) => early(String(status), refuse(status))),
  early('busy', refuse(429, {}, { 'retry-after': '2' })),
  early('long', refuse(429, {}, { 'retry-after': '60' })),
  early('error event', { ...sse(ERROR), ending: 'hang' } as Behavior),
  early('role, then cut', { ...sse(ROLE), ending: 'cut' } as Behavior),
  early('role, then silence', { ...sse(ROLE), ending: 'hang' } as Behavior),
  early('empty', sse()),
  early('page', { kind: 'answer', type: 'text/html', pieces: ['<html></html>'] }),
];

interface Run {
  readonly meetings: readonly (readonly Meeting[])[];
  readonly retries: number;
  readonly timeouts: readonly boolean[];
  readonly isStreamed: boolean;
  readonly hasHeartbeats: boolean;
  /** ms after which the client disconnects; null: it does not. */
  readonly leavesAfter: number | null;
  readonly stepMs: number;
}

const runs: fc.Arbitrary<Run> = fc.record({
  meetings: fc.array(fc.array(fc.constantFrom(...MEETINGS), { minLength: 1, maxLength: 4 }), {
    minLength: 1,
    maxLength: 4,
  }),
  retries: fc.integer({ min: 0, max: 3 }),
  timeouts: fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
  isStreamed: fc.boolean(),
  hasHeartbeats: fc.boolean(),
  leavesAfter: fc.option(fc.integer({ min: 0, max: 9000 }), { freq: 4 }),
  stepMs: fc.integer({ min: 50, max: 4000 }),
});

const DEADLINE_MS = 60_000;

async function drive(run: Run) {
  /** What each request got, in their order. */
  const met: { readonly meeting: Meeting; readonly text: string }[] = [];
  const behaviors = Object.fromEntries(
    run.meetings.map((meetings, i) => [
      `m${i}`,
      meetings.map((meeting) => (isStreamed: boolean) => {
        const text = `<${met.length}:m${i}>`;
        met.push({ meeting, text });
        return meeting.behavior(text, isStreamed);
      }),
    ]),
  );
  const steps = run.meetings.map((_, i) => {
    const timed = run.timeouts[i] === true ? { timeout_seconds: 3 } : {};
    return { model: `openai/m${i}`, ...timed };
  });
  const tracing = new FakeTracing();
  const env = {
    RETRIES: String(run.retries),
    DEADLINE_SECONDS: String(DEADLINE_MS / 1000),
    IDLE_TIMEOUT_SECONDS: '10',
    HEARTBEAT_SECONDS: run.hasHeartbeats ? '0.5' : '0',
    ALIASES: { all: steps },
  };
  const gateway = new RoutedGateway(behaviors, env, { tracing });
  const leaving = new AbortController();
  const began = gateway.clock.now();
  let got: Got | null = null;
  let isDone = false;
  gateway
    .ask({ model: 'all', stream: run.isStreamed }, { signal: leaving.signal })
    .then(read)
    .then((whole) => {
      got = whole;
    })
    .catch(() => {})
    .finally(() => {
      isDone = true;
    });
  let askedAtLeave: number | null = null;
  while (!isDone && gateway.clock.now() - began <= DEADLINE_MS + run.stepMs) {
    await settle();
    if (run.leavesAfter !== null && askedAtLeave === null && gateway.clock.now() - began >= run.leavesAfter) {
      leaving.abort();
      await settle();
      askedAtLeave = gateway.requests.length;
    }
    if (!isDone) gateway.clock.advance(run.stepMs);
  }
  await settle();
  await gateway.gateway.idle();
  return { gateway, tracing, met, got: got as Got | null, isDone, askedAtLeave };
}

function isLeftBehind({ isCancelled, isOver }: UpstreamRequest, meeting: Meeting): boolean {
  const hasBody = meeting.behavior('', true).kind !== 'refuse' && meeting.name !== 'unreachable';
  return hasBody && !isCancelled && !isOver;
}

function checkAnswer(
  { text, models, ids, error, finishes }: Got,
  met: Awaited<ReturnType<typeof drive>>['met'],
) {
  const served = met.at(-1);
  expect(models.length).toBeLessThanOrEqual(1);
  expect(ids.length).toBeLessThanOrEqual(1);
  if (error === null) {
    const isEmpty = served?.meeting.name === 'has no text';
    const reported = [text, served?.meeting.name, finishes];
    expect(reported).toEqual(isEmpty ? ['', 'has no text', ['stop']] : [served?.text, 'answers', ['stop']]);
  } else {
    expect(finishes).toEqual([]);
    expect(['', served?.meeting.begins ? served.text : '']).toContain(text);
  }
}

const RUNS = runsOf(60, 500);

test('R5 R9 M1 W4 exactly one complete response, no attempt after output or after a disconnect, one record', async () => {
  let attempts = 0;
  await fc.assert(
    fc.asyncProperty(runs, async (run) => {
      const { gateway, tracing, met, got, isDone, askedAtLeave } = await drive(run);
      const { requests, records, clock } = gateway;
      attempts += requests.length;
      expect(isDone).toBe(true);
      expect(requests.length).toBeLessThanOrEqual(run.meetings.length * (1 + run.retries));
      if (askedAtLeave === null) {
        expect(got).not.toBeNull();
        if (got !== null) checkAnswer(got, met);
      } else {
        expect(requests).toHaveLength(askedAtLeave);
      }
      const firstOutput = met.findIndex(({ meeting }) => meeting.begins);
      if (firstOutput >= 0) expect(met).toHaveLength(firstOutput + 1);
      for (const [i, one] of requests.entries()) {
        const { meeting } = met[i] ?? {};
        expect([meeting?.name, meeting !== undefined && isLeftBehind(one, meeting)]).toEqual([
          meeting?.name,
          false,
        ]);
      }
      expect(records).toHaveLength(1);
      const [record] = records as [UsageRecord];
      expect(record.attempts.filter(({ ms }) => ms !== null)).toHaveLength(requests.length);
      const wasServed = got !== null && got.error === null && got.finishes.length === 1;
      if (askedAtLeave === null) expect(record.status === 'finished').toBe(wasServed);
      // No timer waits: one that is left is not set again.
      clock.advance(TIMER_MS);
      expect(clock.running).toBe(0);
      expect(tracing.spans.map(({ ends }) => ends)).toEqual(Array(requests.length + 1).fill(1));
    }),
    { numRuns: RUNS },
  );
  expect(attempts).toBeGreaterThan(RUNS);
}, 3_600_000);
