/** Remembers for an hour what refusals said about a model's requests, so that later ones are written accordingly (Z4). */
import type { Statement } from '../providers/field-refusals.ts';
import { type Finding, meets } from '../request-translation/mend.ts';
import type { JsonObject } from '../shared/json.ts';
import { ApiMemory } from './api-choice.ts';

/** For how long a statement applies. */
const MEMORY_MS = 60 * 60 * 1000;

/** Statements that an isolate remembers. The oldest is forgotten first. */
const MAX_STATEMENTS = 1000;

interface LearnedStatement {
  readonly statement: Statement;
  readonly until: number;
}

/** A model of a provider, and the way by which its requests are sent: another API has other fields. */
export interface LearnedScope {
  readonly providerId: string;
  readonly model: string;
  /** `chat`, `responses`, or the path of a passthrough with the client's headers that go with it, such as a version. */
  readonly api: string;
}

/** The isolate has one. A caller with a credential of its own gets another, which is forgotten with the request. */
export class LearnedRefusals {
  readonly apis = new ApiMemory();
  readonly #entries = new Map<string, Map<string, LearnedStatement>>();
  #size = 0;

  /** @returns whether the statement is new */
  note(scope: LearnedScope, statement: Statement, now: number): boolean {
    const key = keyOf(scope);
    const entries = this.#entries.get(key) ?? new Map<string, LearnedStatement>();
    const name = nameOf(statement.finding);
    const isNew = !entries.delete(name);
    if (isNew) this.#size += 1;
    entries.set(name, { statement, until: now + MEMORY_MS });
    this.#entries.delete(key);
    this.#entries.set(key, entries);
    if (this.#size > MAX_STATEMENTS) this.#forgetOldest();
    return isNew;
  }

  /** The statements whose conditions the body meets. */
  recall(scope: LearnedScope, body: JsonObject, now: number): readonly Statement[] {
    if (this.#size === 0) return NONE;
    const entries = this.#entries.get(keyOf(scope));
    if (entries === undefined) return NONE;
    return [...entries.values()]
      .filter(({ until, statement }) => until > now && statement.conditions.every((one) => meets(one, body)))
      .map(({ statement }) => statement);
  }

  /** The provider refused a request that a statement had changed. */
  forget(scope: LearnedScope, findings: readonly Finding[]): void {
    const entries = this.#entries.get(keyOf(scope));
    for (const finding of findings) if (entries?.delete(nameOf(finding))) this.#size -= 1;
  }

  #forgetOldest(): void {
    for (const [key, entries] of this.#entries) {
      const [oldest] = entries.keys();
      if (oldest !== undefined && entries.delete(oldest)) this.#size -= 1;
      if (entries.size === 0) this.#entries.delete(key);
      return;
    }
  }
}

const NONE: readonly Statement[] = [];

function keyOf({ providerId, model, api }: LearnedScope): string {
  return `${providerId}/${model} ${api}`;
}

function nameOf(finding: Finding): string {
  switch (finding.kind) {
    case 'schema':
      return `schema ${finding.keyword}`;
    case 'beta':
      return `beta ${finding.name}`;
    case 'thinking_required':
    case 'forced_tool':
    case 'schema_root':
    case 'developer_role':
      return finding.kind;
    case 'refused_value':
      return `${finding.field} ${finding.value}`;
    default:
      return finding.field;
  }
}
