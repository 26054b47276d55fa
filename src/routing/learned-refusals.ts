/** Remembers for an hour what refusals said about a model's requests, so that later ones are written accordingly (Z4). */
import { type Statement, subjectOf } from '../providers/field-refusals.ts';
import { type Finding, meets } from '../request-translation/mend.ts';
import { fingerprint } from '../shared/fingerprint.ts';
import type { JsonObject } from '../shared/json.ts';
import { ApiMemory } from './api-choice.ts';
import { TaughtMemory } from './taught-memory.ts';

/** What is remembered of a statement: words of Weir's tables, numbers, and fingerprints of values. */
export type LearnedStatement = Pick<Statement, 'finding' | 'conditions'>;

/** A model of a provider, and the way by which its requests are sent: another API has other fields. */
export interface LearnedScope {
  readonly providerId: string;
  readonly model: string;
  /** `chat`, `responses`, or the path of a passthrough with the client's headers that go with it, such as a version. */
  readonly api: string;
  /** The key of the request, from which others learn only what a second key met. */
  readonly keyId: string;
}

/** The isolate has one. A caller with a credential of its own gets another, which is forgotten with the request. */
export class LearnedRefusals {
  readonly apis = new ApiMemory();
  readonly #statements = new TaughtMemory<LearnedStatement>();

  /** @returns whether the statement is new */
  note(scope: LearnedScope, { finding, conditions }: LearnedStatement, now: number): boolean {
    return this.#statements.note(modelOf(scope), nameOf(finding), { finding, conditions }, scope.keyId, now);
  }

  /** The statements whose conditions the body meets. */
  recall(scope: LearnedScope, body: JsonObject, now: number): readonly LearnedStatement[] {
    if (this.#statements.isEmpty) return NONE;
    const recalled = this.#statements.recall(modelOf(scope), scope.keyId, now);
    return [...recalled.values()].filter(({ conditions }) => conditions.every((one) => meets(one, body)));
  }

  /** The provider refused a request that a statement had changed. */
  forget(scope: LearnedScope, findings: readonly Finding[]): void {
    for (const finding of findings) {
      this.#statements.forget(modelOf(scope), nameOf(finding), scope.keyId);
    }
  }
}

const NONE: readonly LearnedStatement[] = [];

/** The client's headers may be long, and name its user. */
function modelOf({ providerId, model, api }: LearnedScope): string {
  return `${providerId}/${model} ${fingerprint(api)}`;
}

function nameOf(finding: Finding): string {
  return finding.kind === 'refused_value' ? `${finding.field} ${finding.fingerprint}` : subjectOf(finding);
}
