/** Tests that each row of the table in docs/relay.md holds, and that the table has each transition that is tested. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { apiError } from '../../src/canonical/error.ts';
import { UsageAccumulator } from '../../src/metering/request-meter.ts';
import { MAX_FINISH_WAIT_MS, MAX_HELD_OUTPUT_BYTES } from '../../src/stream/relay.ts';
import type { TimerLimits } from '../../src/stream/timers.ts';
import { failedWith, type Outcome } from '../../src/stream/types.ts';
import { optionsOf } from '../contract/convert.ts';
import { FakeClock } from './fake-clock.ts';
import {
  bodyOf,
  CHAT,
  DONE,
  fedBody,
  HELLO,
  type Run,
  readAll,
  run,
  STOP,
  settle,
  TestAttempt,
  type Turn,
} from './stream-bench.ts';

const ROLE = 'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n';
const ERROR = 'data: {"error":{"message":"no","type":"rate_limit_error"}}\n\n';
const LOGPROB = { token: '', logprob: 0, bytes: null, top_logprobs: [] };
const LARGE = `data: ${JSON.stringify({
  choices: [{ index: 0, delta: {}, logprobs: { content: Array(4000).fill(LOGPROB) } }],
})}\n\n`;
const HEARTBEAT = ': heartbeat\n\n';
const SLOW = failedWith(apiError('timeout', 'OpenAI sent no output within 1 seconds'), 'slow');

/** A stream and its first attempt, whose body the test writes. */
interface Scene extends Run {
  readonly feed: (text: string) => Promise<void>;
  readonly cancels: () => number;
  /** Outcomes that the runner was asked about, and `output`. */
  readonly reported: string[];
  /** The state, as far as it shows from outside. */
  readonly state: () => Promise<string>;
}

function turnOf(reported: string[], decide: Turn['onEmptyEnd']): Turn {
  return {
    onOutput: () => void reported.push('output'),
    onEmptyEnd: (outcome) => {
      reported.push(outcome.kind);
      return decide(outcome);
    },
  };
}

const accept = (outcome: Outcome) => outcome;
const replace = () => 'replaced' as const;

/** An undecided stream. */
function undecided({ decide = accept as Turn['onEmptyEnd'] } = {}, limits: Partial<TimerLimits> = {}): Scene {
  const reported: string[] = [];
  const { body, feed, counts } = fedBody();
  const clock = new FakeClock();
  const scene = run(body, limits, clock, undefined, turnOf(reported, decide));
  const { stream, answer, ends } = scene;
  return {
    ...scene,
    reported,
    cancels: () => counts.cancels,
    feed: async (text) => {
      feed(text);
      await settle();
    },
    state: async () => {
      await settle();
      if (ends.length > 0) return 'over';
      if (stream.isCommitted) return 'committed';
      return answer.relay.outcome.kind === 'more' ? 'undecided' : 'waiting';
    },
  };
}

/** A stream whose first attempt was replaced. */
async function waiting(limits: Partial<TimerLimits> = {}): Promise<Scene> {
  const scene = undecided({ decide: replace }, limits);
  await scene.feed(ERROR);
  return scene;
}

async function committed(limits: Partial<TimerLimits> = {}): Promise<Scene> {
  const scene = undecided({}, limits);
  await scene.feed(HELLO);
  return scene;
}

function begin({ stream, clock, reported }: Scene): TestAttempt {
  const options = optionsOf(CHAT, new UsageAccumulator(() => 0, 0));
  return new TestAttempt(stream, options, turnOf(reported, accept), clock);
}

/** Runs a row: the state that follows, or the states that may follow. */
const ROWS: Readonly<Record<string, () => Promise<string>>> = {
  'waiting: an attempt begins': async () => {
    const scene = await waiting({ idleTimeoutMs: 100 });
    scene.clock.advance(500);
    expect(await scene.state()).toBe('waiting');
    const { relay } = begin(scene);
    return relay.outcome.kind === 'more' ? 'undecided' : 'cancelled';
  },
  'waiting: heartbeat': async () => {
    const scene = await waiting({ heartbeatMs: 100 });
    scene.clock.advance(100);
    const state = await scene.state();
    expect([scene.written, scene.heads]).toEqual([[HEARTBEAT.length], [null]]);
    return state;
  },
  'waiting: deadline': async () => {
    const scene = await waiting({ deadlineMs: 100 });
    scene.clock.advance(100);
    const state = await scene.state();
    expect(scene.heads).toMatchObject([{ reason: 'deadline' }]);
    return state;
  },
  'waiting: the client disconnects': async () => {
    const scene = await waiting();
    await scene.readable.cancel();
    const state = await scene.state();
    expect(scene.ends).toMatchObject([{ outcome: { kind: 'cancelled' } }]);
    return state;
  },
  'waiting: no attempt follows': async () => {
    const scene = await waiting();
    void scene.stream.finish(failedWith(apiError('timeout', 'The request is over'), 'stopped'));
    const state = await scene.state();
    expect(scene.heads).toMatchObject([{ reason: 'stopped' }]);
    return state;
  },
  'undecided: a read without output': async () => {
    const scene = undecided();
    await scene.feed(ROLE);
    expect(scene.written).toEqual([]);
    return scene.state();
  },
  'undecided: more than 64 KiB are held': async () => {
    const scene = undecided();
    await scene.feed(LARGE);
    expect(scene.reported).toEqual(['output']);
    expect(scene.written[0]).toBeGreaterThan(MAX_HELD_OUTPUT_BYTES);
    return scene.state();
  },
  'undecided: the first output': async () => {
    const scene = undecided();
    await scene.feed(ROLE);
    await scene.feed(HELLO);
    expect([scene.reported, scene.written.length]).toEqual([['output'], 1]);
    return scene.state();
  },
  'undecided: complete, with output in the same read': async () => {
    const scene = undecided();
    await scene.feed(ROLE + HELLO + STOP + DONE);
    expect([scene.reported, scene.written.length]).toEqual([['output'], 1]);
    return scene.state();
  },
  'undecided: complete, without output': async () => {
    const scene = undecided();
    await scene.feed(ROLE);
    await scene.feed(STOP + DONE);
    expect(scene.reported).toEqual(['done']);
    expect(await readAll(scene.readable)).toMatch(/assistant.*\n\n.*stop.*\n\ndata: \[DONE\]\n\n$/);
    return scene.state();
  },
  'undecided: complete, without output, and the alias moves on': async () => {
    const scene = undecided({ decide: replace });
    await scene.feed(ROLE + STOP + DONE);
    expect([scene.reported, scene.written]).toEqual([['done'], []]);
    return scene.state();
  },
  'undecided: failed, with output in the same read': async () => {
    const scene = undecided({ decide: replace });
    await scene.feed(HELLO + ERROR);
    expect([scene.reported, scene.written.length]).toEqual([['output'], 1]);
    return scene.state();
  },
  'undecided: failed, and another attempt follows': async () => {
    const scene = undecided({ decide: replace });
    await scene.feed(ROLE);
    await scene.feed(ERROR);
    expect([scene.reported, scene.written]).toEqual([['failed'], []]);
    return scene.state();
  },
  'undecided: failed, and none follows': async () => {
    const scene = undecided();
    await scene.feed(ROLE);
    await scene.feed(ERROR);
    expect([scene.heads.length, scene.written]).toEqual([1, []]);
    return scene.state();
  },
  'undecided: idle timeout': async () => {
    const states = [replace, accept].map(async (decide) => {
      const scene = undecided({ decide }, { idleTimeoutMs: 100, deadlineMs: 300 });
      scene.clock.advance(100);
      const state = await scene.state();
      expect([scene.reported, scene.cancels()]).toEqual([['failed'], 1]);
      return state;
    });
    return (await Promise.all(states)).join(' or ');
  },
  'undecided: timeout of the alias': async () => {
    const states = [replace, accept].map(async (decide) => {
      const scene = undecided({ decide });
      // Nobody reads: the client has not taken it.
      await scene.feed(ROLE);
      scene.answer.relay.end(SLOW);
      const state = await scene.state();
      expect([scene.reported, scene.cancels()]).toEqual([['failed'], 1]);
      return state;
    });
    return (await Promise.all(states)).join(' or ');
  },
  'undecided: a JSON object in place of events': async () => {
    const scene = undecided();
    void scene.answer.sendResponse({ choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }] });
    expect(await readAll(scene.readable)).toContain('"content":"Hi"');
    return scene.state();
  },
  'undecided: heartbeat': async () => {
    const scene = undecided({}, { heartbeatMs: 100 });
    await scene.feed(ROLE);
    scene.clock.advance(100);
    expect(scene.written).toEqual([HEARTBEAT.length]);
    return scene.state();
  },
  'undecided: heartbeat, at the time at which the attempt ends': async () => {
    const states = [replace, accept].map(async (decide) => {
      const scene = undecided({ decide }, { heartbeatMs: 100 });
      await scene.feed(ROLE);
      scene.answer.relay.end(SLOW);
      scene.clock.advance(100);
      const state = await scene.state();
      expect(scene.written).toEqual(decide === replace ? [HEARTBEAT.length] : []);
      return state;
    });
    return (await Promise.all(states)).join(' or ');
  },
  'undecided: deadline': async () => {
    const scene = undecided({ decide: replace }, { deadlineMs: 100 });
    await scene.feed(ROLE);
    scene.clock.advance(100);
    const state = await scene.state();
    expect([scene.reported, scene.written, scene.cancels()]).toEqual([[], [], 1]);
    return state;
  },
  'undecided: the client disconnects': async () => {
    const scene = undecided();
    await scene.readable.cancel();
    const state = await scene.state();
    expect([scene.reported, scene.cancels()]).toEqual([[], 1]);
    return state;
  },
  'committed: a read whose last event has a finish, and no other for 1 s': async () => {
    const scene = await committed();
    void readAll(scene.readable);
    await scene.feed(STOP);
    scene.clock.advance(MAX_FINISH_WAIT_MS - 1);
    await settle();
    expect(scene.written).toHaveLength(1);
    scene.clock.advance(1);
    const state = await scene.state();
    expect(scene.written).toHaveLength(2);
    return state;
  },
  'committed: a read': async () => {
    const scene = await committed();
    await scene.feed(HELLO);
    expect(scene.written).toHaveLength(1);
    await scene.readable.getReader().read();
    const state = await scene.state();
    expect(scene.written).toHaveLength(2);
    return state;
  },
  'committed: complete': async () => {
    const scene = await committed();
    void readAll(scene.readable);
    await scene.feed(STOP + DONE);
    expect([scene.written.length, scene.ends[0]?.outcome.kind]).toEqual([2, 'done']);
    return scene.state();
  },
  'committed: failed': async () => {
    const scene = await committed();
    const got = readAll(scene.readable);
    await scene.feed(HELLO + ERROR);
    expect([scene.written.length, scene.reported]).toEqual([2, ['output']]);
    expect(await got).toMatch(/Hello.*\n\n.*Hello.*\n\n.*"error".*\n\ndata: \[DONE\]\n\n$/);
    return scene.state();
  },
  'committed: idle timeout': async () => {
    const scene = await committed({ idleTimeoutMs: 100 });
    void readAll(scene.readable);
    await settle();
    scene.clock.advance(100);
    const state = await scene.state();
    expect(scene.ends).toMatchObject([{ outcome: { reason: 'idle' }, isOpen: true }]);
    return state;
  },
  'committed: heartbeat': async () => {
    const scene = await committed({ heartbeatMs: 100 });
    scene.clock.advance(100);
    expect(scene.written).toHaveLength(1);
    void readAll(scene.readable);
    await settle();
    scene.clock.advance(100);
    expect(scene.written).toHaveLength(2);
    return scene.state();
  },
  'committed: deadline': async () => {
    const scene = await committed({ deadlineMs: 100 });
    scene.clock.advance(100);
    const state = await scene.state();
    expect([scene.cancels(), scene.clock.running]).toEqual([1, 0]);
    expect(await readAll(scene.readable)).toMatch(/Hello.*\n\n.*"timeout".*\n\ndata: \[DONE\]\n\n$/);
    return state;
  },
  'committed: the client disconnects': async () => {
    const scene = await committed();
    await scene.readable.cancel();
    const state = await scene.state();
    expect(scene.cancels()).toBe(1);
    return state;
  },
  'over: an attempt begins': async () => {
    const scene = undecided();
    await scene.readable.cancel();
    await settle();
    const late = begin(scene);
    expect(late.relay.outcome.kind).toBe('cancelled');
    await late.pump(bodyOf(HELLO));
    expect(scene.written).toEqual([]);
    return scene.state();
  },
};

const documented = readFileSync(join(import.meta.dirname, '../../docs/relay.md'), 'utf8')
  .split('\n## ')
  .filter((section) => section.startsWith('States'))
  .flatMap((section) => [...section.matchAll(/^\| (\w+) \| (.+?) \| .+ \| ([\w ]+) \|$/gm)])
  .map(([, state, event, next]) => [`${state}: ${event}`, next ?? ''] as const)
  .filter(([row]) => row !== 'state: event');

test.each(documented)('docs/relay.md: %s: %s', async (row, next) => {
  const state = await ROWS[row]?.();
  expect(state).toBe(next);
});

test('docs/relay.md has each transition once', () => {
  expect(documented.map(([row]) => row).sort()).toEqual(Object.keys(ROWS).sort());
});
