/** Sends the planned requests one after the other and collects the results. */

import { PLAIN } from './bodies.ts';
import type { Planned, Target } from './plan.ts';
import { type Answer, sendWithRetry } from './request.ts';
import { type StreamFindings, StreamInspector } from './streams.ts';
import { type Judgement, judge } from './verdict.ts';

export interface Result extends Judgement {
  readonly name: string;
  readonly breaks: readonly string[];
  readonly newKeys: readonly string[];
  /** How many of the responses were streams. */
  readonly streams: number;
}

export interface ProbeRun {
  readonly results: readonly Result[];
  /** The number of recorded streams of the provider that the keys were compared with. */
  readonly recordings: number;
  /** Why the probe stopped early, or null. */
  readonly stopped: string | null;
}

/** @param onResult called after each body */
export async function probe(
  target: Target,
  plan: readonly Planned[],
  onResult: (result: Result) => void = () => undefined,
): Promise<ProbeRun> {
  const { id, name } = target.provider;
  const inspector = new StreamInspector(id);
  const { recordings } = inspector;
  const results: Result[] = [];
  for (const planned of plan) {
    const raw = await sendWithRetry(target, planned.route, planned.raw);
    const weir = raw.kind === 'stop' ? null : await sendAsWeir(target, planned);
    const stop = [raw, weir].find((answer) => answer?.kind === 'stop');
    if (stop?.kind === 'stop') {
      return {
        results,
        recordings,
        stopped: `${name} rejected the key, or its balance is exhausted: ${stop.message}`,
      };
    }
    const result = resultOf(planned, raw, weir, inspector);
    results.push(result);
    onResult(result);
    if (planned.name === PLAIN && ['refused', 'unclear'].includes(result.verdict)) {
      return { results, recordings, stopped: `${name} rejects a plain request: ${result.note}` };
    }
  }
  return { results, recordings, stopped: null };
}

/** Null if Weir sends the same body, or rejects the request. */
async function sendAsWeir(target: Target, { route, rewritten, isSame }: Planned): Promise<Answer | null> {
  return isSame || rewritten.kind === 'error' ? null : sendWithRetry(target, route, rewritten.value.body);
}

function resultOf(planned: Planned, raw: Answer, weir: Answer | null, inspector: StreamInspector): Result {
  const found: StreamFindings[] = [];
  for (const answer of [raw, weir]) {
    if (answer?.kind === 'stream') found.push(inspector.inspect(answer.text, planned));
  }
  const { verdict, note, rows } = judge(planned, raw, weir);
  const failures = found.flatMap(({ failure }) =>
    failure === null ? [] : [`its stream failed: ${failure}`],
  );
  return {
    name: planned.name,
    verdict,
    note: [note, ...failures].filter(Boolean).join('; '),
    rows,
    breaks: [...new Set(found.flatMap(({ breaks }) => breaks))],
    newKeys: found.flatMap(({ newKeys }) => newKeys),
    streams: found.length,
  };
}
