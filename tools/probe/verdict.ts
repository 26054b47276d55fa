/** Judges the responses to one body: how the provider handles it, and whether Weir's table is right. */

import { changesOf, describe, doubtful, isUsageRequest, rowOf } from './changes.ts';
import type { Planned } from './plan.ts';
import type { Answer } from './request.ts';

/**
 * - `taken`: the provider accepts it, and Weir sends it unchanged or with the same meaning.
 * - `mended`: the provider rejects or silently ignores it, and accepts Weir's translation.
 * - `refused`: the provider rejects both.
 * - `stale`: the provider accepts it, but Weir changes or rejects it: the table may be out of date.
 * - `broken`: the provider accepts it, and rejects Weir's translation.
 * - `unclear`: at least one of the two was neither accepted nor rejected.
 */
export const VERDICTS = ['taken', 'mended', 'refused', 'stale', 'broken', 'unclear'] as const;
export type Verdict = (typeof VERDICTS)[number];

export interface Judgement {
  readonly verdict: Verdict;
  readonly note: string;
  /** The rows of the provider's table that the verdict is about. */
  readonly rows: readonly string[];
}

/** The note for a body that is sent unchanged and has no effect. */
export const WITHOUT_EFFECT = 'taken without effect';

/** @param weir the response to Weir's translation; null if that is the same body, or if Weir rejects the request */
export function judge(planned: Planned, raw: Answer, weir: Answer | null): Judgement {
  const { rewritten, isSame, effect } = planned;
  if (isUnclear(raw)) return judged('unclear', raw.message);
  const hasEffect = raw.kind === 'object' ? (effect?.(raw.object) ?? null) : null;
  if (rewritten.kind === 'error') {
    return judgeRefusalByWeir(rewritten.error.param ?? '', planned, raw, hasEffect);
  }
  if (isSame) return judgeSame(raw, hasEffect);
  if (weir === null) throw new Error(`${planned.name} was not sent as Weir sends it`);
  if (isUnclear(weir)) return judged('unclear', `as Weir sends it: ${weir.message}`);
  const changes = changesOf(planned.raw, rewritten.value.body).filter((change) => !isUsageRequest(change));
  const said = changes.length === 0 ? '' : `Weir ${describe(changes)}`;
  const rows = [...new Set(changes.map((change) => rowOf(change, planned)))];
  if (raw.kind === 'refused') {
    return weir.kind === 'refused'
      ? judged('refused', joined(raw.message, otherMessage(raw, weir)), rows)
      : judged('mended', joined(raw.message, said), rows);
  }
  if (weir.kind === 'refused') return judged('broken', joined(weir.message, said), rows);
  const doubts = doubtful(planned);
  // If Weir's translation has no effect either, the model may have ignored the instruction.
  if (hasEffect === false && weir.kind === 'object' && effect?.(weir.object) === true) {
    return judged('mended', joined(WITHOUT_EFFECT, said), rows);
  }
  if (doubts.length === 0) return judged('taken', said, rows);
  const doubtfulRows = [...new Set(doubts.map((change) => rowOf(change, planned)))];
  return judged('stale', `Weir ${describe(doubts)}`, doubtfulRows);
}

function isUnclear(answer: Answer): answer is Extract<Answer, { kind: 'unclear' | 'stop' }> {
  return answer.kind === 'unclear' || answer.kind === 'stop';
}

function judged(verdict: Verdict, note = '', rows: readonly string[] = []): Judgement {
  return { verdict, note, rows };
}

function joined(...texts: readonly string[]): string {
  return texts.filter(Boolean).join('; ');
}

function otherMessage(raw: { readonly message: string }, weir: { readonly message: string }): string {
  return weir.message === raw.message ? '' : `as Weir sends it: ${weir.message}`;
}

function judgeSame(raw: Answer, hasEffect: boolean | null): Judgement {
  if (raw.kind === 'refused') return judged('refused', raw.message);
  return hasEffect === false ? judged('taken', WITHOUT_EFFECT) : judged('taken');
}

/** Weir rejects fields that its table declares as ignored. Only an effect of the field would contradict the table. */
function judgeRefusalByWeir(
  field: string,
  { rules }: Planned,
  raw: Answer,
  hasEffect: boolean | null,
): Judgement {
  const rows = [`fields.${field}`];
  if (raw.kind === 'refused') return judged('refused', `${raw.message}; Weir rejects ${field} too`, rows);
  const isIgnored = rules.fields[field]?.kind === 'ignored' && hasEffect !== true;
  const shown = hasEffect === false ? WITHOUT_EFFECT : 'its effect is unknown';
  return isIgnored
    ? judged('taken', `${shown}; Weir rejects ${field} as ignored`, rows)
    : judged('stale', `Weir rejects ${field}`, rows);
}
