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
  readonly #taught = new TaughtMemory<Taught>();

  /** Remembers what a refusal asked for. */
  note(model: ModelOfKey, change: SecondTry, now: number): void {
    const note = (scope: Scope, value: Taught) =>
      this.#taught.note(nameOfModel(model), scope, value, model.keyId, now);
    switch (change.kind) {
      case 'api':
        if (change.isRemembered !== false) note(change.scope, change.api);
        return;
      case 'without_summary':
        note('summary', change.kind);
        return;
      case 'other_path':
        // Of the other path it is the first one.
        if (this.isAtOtherPath(model, now)) this.#taught.forget(nameOfModel(model), 'path', model.keyId);
        else note('path', change.kind);
        return;
      // It says nothing about later requests.
      case 'without_reasoning':
        return;
    }
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

  #known(model: ModelOfKey, scope: Scope, now: number): Taught | undefined {
    if (this.#taught.isEmpty) return undefined;
    return this.#taught.recall(nameOfModel(model), model.keyId, now).get(scope);
  }
}

type Taught = ChatApi | 'without_summary' | 'other_path';
type Scope = 'model' | 'tools' | 'summary' | 'path';

/** A model of a provider, as a key's requests name it. */
export interface ModelOfKey {
  readonly providerId: string;
  readonly model: string;
  /** The key of the request, from which others learn only what a second key met. */
  readonly keyId: string;
}

function nameOfModel({ providerId, model }: ModelOfKey): string {
  return `${providerId}/${model}`;
}

/** What is remembered of a statement: words of Weir's tables, numbers, and fingerprints of values. */
export type LearnedStatement = Pick<Statement, 'finding' | 'conditions'>;

/** A model of a provider, and the way by which its requests are sent: another API has other fields. */
export interface LearnedScope extends ModelOfKey {
  /** `chat`, `responses`, or the path of a passthrough with the client's headers that go with it, such as a version. */
  readonly api: string;
}

/** The isolate has one. A caller with a credential of its own gets another, which is forgotten with the request. */
export class LearnedRefusals {
  readonly apis = new ApiMemory();
  readonly #statements = new TaughtMemory<LearnedStatement>();

  /** @returns whether the statement is new */
  note(scope: LearnedScope, { finding, conditions }: LearnedStatement, now: number): boolean {
    return this.#statements.note(
      nameOfScope(scope),
      nameOf(finding),
      { finding, conditions },
      scope.keyId,
      now,
    );
  }

  /** The statements whose conditions the body meets. */
  recall(scope: LearnedScope, body: JsonObject, now: number): readonly LearnedStatement[] {
    if (this.#statements.isEmpty) return NONE;
    const recalled = this.#statements.recall(nameOfScope(scope), scope.keyId, now);
    return [...recalled.values()].filter(({ conditions }) => conditions.every((one) => meets(one, body)));
  }

  /** The provider refused a request that a statement had changed. */
  forget(scope: LearnedScope, findings: readonly Finding[]): void {
    for (const finding of findings) {
      this.#statements.forget(nameOfScope(scope), nameOf(finding), scope.keyId);
    }
  }
}

const NONE: readonly LearnedStatement[] = [];

/** The client's headers may be long, and name its user. */
function nameOfScope(scope: LearnedScope): string {
  return `${nameOfModel(scope)} ${fingerprint(scope.api)}`;
}

function nameOf(finding: Finding): string {
  return finding.kind === 'refused_value' ? `${finding.field} ${finding.fingerprint}` : subjectOf(finding);
}
