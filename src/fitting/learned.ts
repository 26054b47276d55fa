/** Remembers for an hour what refusals said about a model's requests, so that later ones are written accordingly (Z4). */

import type { ChatApi } from '../canonical/conversation.ts';
import { fingerprint } from '../shared/fingerprint.ts';
import type { JsonObject } from '../shared/json.ts';
import type { SecondTry } from './api-statements.ts';
import { meets } from './fit.ts';
import { type Finding, subjectOf } from './rows.ts';
import type { Statement } from './statements.ts';
import { TaughtMemory } from './taught-memory.ts';

/** Remembers for an hour which API the refusals of a model named, so that later requests need no second try. The isolate has one. */
export class ApiMemory {
  readonly #taught = new TaughtMemory<ChatApi | 'without_summary' | 'other_path'>();

  /** Remembers what a refusal asked for. Refused reasoning says nothing about later requests. */
  note({ providerId, model, keyId }: ModelOfKey, change: SecondTry, now: number): void {
    if (change.kind === 'without_reasoning') return;
    const scope: Scope = change.kind === 'api' ? change.scope : SCOPES[change.kind];
    const value = change.kind === 'api' ? change.api : change.kind;
    this.#taught.note(`${providerId}/${model}`, scope, value, keyId, now);
  }

  /** The API that a refusal named; undefined if there was none. */
  recall(model: ModelOfKey, hasTools: boolean, now: number): ChatApi | undefined {
    const scopes: Scope[] = hasTools ? ['model', 'tools'] : ['model'];
    for (const scope of scopes) {
      const knownApi = this.#known(model, scope, now);
      if (knownApi === 'chat' || knownApi === 'responses') return knownApi;
    }
    return undefined;
  }

  /** Whether the provider refused to summarize the model's reasoning. */
  refusesSummary(model: ModelOfKey, now: number): boolean {
    return this.#known(model, 'summary', now) !== undefined;
  }

  /** Whether the provider has the model below another path than its table says. */
  isAtOtherPath(model: ModelOfKey, now: number): boolean {
    return this.#known(model, 'path', now) !== undefined;
  }

  /** The model is no longer below the other path. */
  forgetOtherPath({ providerId, model, keyId }: ModelOfKey): void {
    this.#taught.forget(`${providerId}/${model}`, 'path', keyId);
  }

  #known(
    { providerId, model, keyId }: ModelOfKey,
    scope: Scope,
    now: number,
  ): ChatApi | 'without_summary' | 'other_path' | undefined {
    return this.#taught.isEmpty
      ? undefined
      : this.#taught.recall(`${providerId}/${model}`, keyId, now).get(scope);
  }
}

/** A model of a provider, as a key's requests name it. */
export interface ModelOfKey {
  readonly providerId: string;
  readonly model: string;
  readonly keyId: string;
}

type Scope = 'model' | 'tools' | 'summary' | 'path';

const SCOPES = { without_summary: 'summary', other_path: 'path' } as const satisfies Record<string, Scope>;

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
