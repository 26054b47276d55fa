/** Changes gateway keys where no ledger object holds them: keys without limits, in KV alone. */
import {
  applyChange,
  deleteChange,
  type KeyChange,
  type KeyChangeResult,
  putChange,
  sizeProblem,
} from '../auth/keys.ts';
import type { ApiError } from '../canonical/error.ts';
import type { JsonObject } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { KeyCallContext, KeyObjects } from './context.ts';

/** Keys and their changes in KV, for a deployment without ledger objects: keys with limits are refused. */
export class KeysInKv implements KeyObjects {
  readonly #limitsError: (fields: JsonObject) => ApiError;

  /** @param limitsError the error for a request about these limits */
  constructor(limitsError: (fields: JsonObject) => ApiError) {
    this.#limitsError = limitsError;
  }

  async readLimitStatus() {
    return failure(this.#limitsError({}));
  }

  async addToBudget() {
    return failure(this.#limitsError({}));
  }

  async readUserStatus() {
    return failure(this.#limitsError({}));
  }

  async readLimitsRow() {
    return failure(this.#limitsError({}));
  }

  async setLimits(
    _context: KeyCallContext,
    _keyId: string,
    fields: JsonObject,
  ): Promise<Result<JsonObject | null, ApiError>> {
    return failure(this.#limitsError(fields));
  }

  async readTeamStatus() {
    return failure(this.#limitsError({}));
  }

  async addToTeamBudget() {
    return failure(this.#limitsError({}));
  }

  async changeTeam() {
    return failure(this.#limitsError({}));
  }

  async changePeople() {
    return failure(this.#limitsError({}));
  }

  async readPersonStatus() {
    return failure(this.#limitsError({}));
  }

  async deleteTeam() {
    return failure(this.#limitsError({}));
  }

  async changeKey(context: KeyCallContext, change: KeyChange): Promise<Result<KeyChangeResult, ApiError>> {
    const { key, limits, replacesLimits = false } = change;
    if (Object.keys(limits).length > 0) return failure(this.#limitsError(limits));
    const changed = { ...applyChange(key, change), ...(replacesLimits && { limits: null }) };
    const tooLarge = sizeProblem(changed);
    if (tooLarge !== null) return ok({ kind: 'invalid', message: tooLarge, param: 'models' });
    await putChange(context.ports.store, changed);
    return ok({ kind: 'changed', key: changed, before: key });
  }

  async revokeKey(context: KeyCallContext, keyId: string): Promise<void> {
    await deleteChange(context.ports.store, keyId);
  }
}
