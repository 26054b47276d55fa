/** Calls the ledger objects of keys: with a timeout, one retry, and an API error where an object can't be reached. */
import { encodeLimits, type Limits, limitField, type NewTopUp } from '../auth/key-limits.ts';
import type { KeyChange, KeyChangeResult } from '../auth/keys.ts';
import type { Team } from '../auth/teams.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import type { KeyCallContext, KeyObjects } from '../http/context.ts';
import { KeysInKv } from '../http/keys-in-kv.ts';
import { placeError } from '../settings/placement.ts';
import { callTwice, failureOf, type ObjectFailure } from '../shared/durable-objects.ts';
import type { JsonObject } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import {
  type LedgerNamespace,
  type LedgerStub,
  PEOPLE,
  readObjectName,
  teamObject,
  userObject,
} from './ledger-calls.ts';
import { unreadableReason } from './limits/limit-tables.ts';

/** How long a request waits for its key's ledger object before `BUDGET_FAIL` decides. */
const LEDGER_TIMEOUT_MS = 5000;

/** Limits in a deployment without ledger objects. */
const UNBOUND =
  'Limits need the ledger object: bind WEIR_LEDGER to the class LedgerObject ([[durable_objects.bindings]] in wrangler.toml)';

export class LedgerClient implements KeyObjects {
  readonly #ledgers: LedgerNamespace | null;
  /** The keys where no objects are bound. */
  readonly #kv = new KeysInKv((fields) => apiError('invalid_request', UNBOUND, limitField(fields)));

  /** @param ledgers null where `WEIR_LEDGER` is not bound: calls then fail, except changes of keys without limits */
  constructor(ledgers: LedgerNamespace | null) {
    this.#ledgers = ledgers;
  }

  /**
   * @param name of the object: a key's id, or {@link userObject}
   * @param send calls the object. It runs a second time after a failure, so repeating it must change nothing.
   */
  async call<Value>(
    { ports: { clock, log }, requestId }: KeyCallContext,
    name: string,
    send: (ledger: LedgerStub) => Promise<Value>,
  ): Promise<Result<Value, ApiError>> {
    const ledgers = this.#ledgers;
    try {
      if (ledgers === null) throw new Error('WEIR_LEDGER is not bound');
      const newStub = () => ledgers.getByName(name);
      const limit = { ms: LEDGER_TIMEOUT_MS, startTimer: clock.startTimer };
      const answer = await callTwice(newStub, (ledger) => catchUnreadable(send(ledger)), limit);
      if (answer.kind === 'unreadable') throw answer.error;
      return ok(answer.value);
    } catch (error) {
      const misplaced = placeError(error);
      if (misplaced !== null) return failure(misplaced);
      const { keyId } = readObjectName(name);
      const reason = unreadableReason(error);
      if (reason !== null) {
        log({ event: 'ledger_unreadable', request_id: requestId, key_id: keyId, reason });
        return failure(
          apiError('ledger_unreadable', `What is stored of this key cannot be read: ${reason}. ${REPAIR}`),
        );
      }
      const cause = failureOf(error);
      const entry = { request_id: requestId, key_id: keyId, cause, reason: String(error) };
      log({ event: 'ledger_unreachable', ...entry });
      return failure(UNREACHABLE[cause]);
    }
  }

  readLimitStatus(context: KeyCallContext, keyId: string, listed: JsonObject) {
    return this.call(context, keyId, (ledger) => ledger.standing(listed));
  }

  addToBudget(context: KeyCallContext, keyId: string, added: NewTopUp, listed: JsonObject) {
    return this.call(context, keyId, (ledger) => ledger.addToBudget(added, listed));
  }

  readLimitsRow(context: KeyCallContext, keyId: string) {
    return this.call(context, keyId, (ledger) => ledger.limitsRow());
  }

  readUserStatus(context: KeyCallContext, keyId: string, user: string | null, limits: Limits) {
    return this.call(context, userObject(keyId, user), (ledger) => ledger.userStanding(limits));
  }

  async setLimits(
    context: KeyCallContext,
    keyId: string,
    fields: JsonObject,
  ): Promise<Result<JsonObject | null, ApiError>> {
    if (this.#ledgers === null) return this.#kv.setLimits(context, keyId, fields);
    const changed = await this.call(context, keyId, (ledger) => ledger.changeLimits(fields));
    if (changed.kind === 'error') return changed;
    const { value } = changed;
    if (value.kind === 'limits') return ok(encodeLimits(value.limits));
    return failure(apiError('invalid_request', value.message, value.param));
  }

  async changeKey(context: KeyCallContext, change: KeyChange): Promise<Result<KeyChangeResult, ApiError>> {
    if (this.#ledgers === null) return this.#kv.changeKey(context, change);
    return this.call(context, change.key.id, (ledger) => ledger.changeKey(change));
  }

  readTeamStatus(context: KeyCallContext, team: string, listed: JsonObject) {
    return this.readLimitStatus(context, teamObject(team), listed);
  }

  addToTeamBudget(context: KeyCallContext, team: string, added: NewTopUp, listed: JsonObject) {
    return this.addToBudget(context, teamObject(team), added, listed);
  }

  async changeTeam(context: KeyCallContext, change: KeyChange): Promise<Result<KeyChangeResult, ApiError>> {
    if (this.#ledgers === null) return this.#kv.changeTeam();
    return this.call(context, teamObject(change.key.id), (ledger) => ledger.changeKey(change));
  }

  async changePeople(...[context, team, change]: Parameters<KeyObjects['changePeople']>) {
    if (this.#ledgers === null) return this.#kv.changePeople();
    return this.call(context, PEOPLE, (ledger) => ledger.changePeople(team, change));
  }

  readPersonStatus(context: KeyCallContext, team: string, person: string, limits: Limits) {
    return this.readUserStatus(context, teamObject(team), person, limits);
  }

  deleteTeam(context: KeyCallContext, { id, created_at }: Pick<Team, 'id' | 'created_at'>) {
    return this.call(context, teamObject(id), (ledger) => ledger.deleteTeam(created_at));
  }

  async revokeKey(context: KeyCallContext, keyId: string): Promise<void> {
    if (this.#ledgers === null) await this.#kv.revokeKey(context, keyId);
    else await this.call(context, keyId, (ledger) => ledger.revokeKey(keyId));
  }
}

const BROKEN = apiError(
  'ledger_unreachable',
  "This key's ledger object (WEIR_LEDGER) can't be reached: try again",
);

const UNREACHABLE: Readonly<Record<ObjectFailure, ApiError>> = {
  overloaded: apiError(
    'ledger_overloaded',
    "This key's ledger object (WEIR_LEDGER) gets more requests than it takes: try again later",
  ),
  slow: apiError(
    'ledger_unreachable',
    `This key's ledger object (WEIR_LEDGER) gives no answer within ${LEDGER_TIMEOUT_MS / 1000} s: try again`,
  ),
  reset: BROKEN,
  failed: BROKEN,
};

const REPAIR =
  'An admin sets its limits anew with PUT /admin/keys/<id>/limits, removes them with DELETE, or revokes the key';

/** An object that cannot read what it has stored is not called a second time. */
async function catchUnreadable<Value>(
  call: Promise<Value>,
): Promise<
  { readonly kind: 'value'; readonly value: Value } | { readonly kind: 'unreadable'; readonly error: unknown }
> {
  try {
    return { kind: 'value', value: await call };
  } catch (error) {
    if (unreadableReason(error) === null) throw error;
    return { kind: 'unreadable', error };
  }
}
