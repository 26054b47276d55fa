/** Judges the answers to one body: what the provider does with it, and whether Weir's table is right about that. */
import type { Answer } from './ask.ts';
import { changesOf, describe, doubtful, isAskForUsage, rowOf } from './changes.ts';
import type { Planned } from './plan.ts';

/**
 * - `taken`: the provider takes it, and Weir sends it on, as it is or in words that mean the same.
 * - `mended`: the provider refuses it, or ignores it in silence, and takes what Weir makes of it.
 * - `refused`: the provider refuses both.
 * - `stale`: the provider takes it, and Weir changes or refuses it all the same: the table may be out of date.
 * - `broken`: the provider takes it, and refuses what Weir makes of it.
 * - `unclear`: the provider neither took nor refused one of the two.
 */
export const VERDICTS = ['taken', 'mended', 'refused', 'stale', 'broken', 'unclear'] as const;
export type Verdict = (typeof VERDICTS)[number];

export interface Judgement {
  readonly verdict: Verdict;
  readonly note: string;
  /** The rows of the provider's table that the verdict speaks about. */
  readonly rows: readonly string[];
}

/** The whole note of a body that is sent as it is, and changes nothing. */
export const WITHOUT_EFFECT = 'taken without effect';

/** @param weir the answer to what Weir sends; null where that is the same body, or none because Weir refuses */
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
  const changes = changesOf(planned.raw, rewritten.value.body).filter((change) => !isAskForUsage(change));
  const said = changes.length === 0 ? '' : `Weir ${describe(changes)}`;
  const rows = [...new Set(changes.map((change) => rowOf(change, planned)))];
  if (raw.kind === 'refused') {
    return weir.kind === 'refused'
      ? judged('refused', joined(raw.message, otherMessage(raw, weir)), rows)
      : judged('mended', joined(raw.message, said), rows);
  }
  if (weir.kind === 'refused') return judged('broken', joined(weir.message, said), rows);
  const doubts = doubtful(planned);
  // Where Weir's has no effect either, it may be the model that did not do what it was asked to.
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

/** Weir refuses what its table says is ignored: that the provider takes it does not speak against that, its effect would. */
function judgeRefusalByWeir(
  field: string,
  { rules }: Planned,
  raw: Answer,
  hasEffect: boolean | null,
): Judgement {
  const rows = [`fields.${field}`];
  if (raw.kind === 'refused') return judged('refused', `${raw.message}; Weir refuses ${field}, too`, rows);
  const isIgnored = rules.fields[field]?.kind === 'ignored' && hasEffect !== true;
  const shown = hasEffect === false ? WITHOUT_EFFECT : 'whether it has an effect does not show';
  return isIgnored
    ? judged('taken', `${shown}; Weir refuses ${field} as ignored`, rows)
    : judged('stale', `Weir refuses ${field}`, rows);
}
