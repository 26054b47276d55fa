/** What asks a holder for room: a request, or a child with its message. */
import { type LimitStatus, type Limits, outputLimitOf } from '../../auth/key-limits.ts';
import type { JsonObject } from '../../shared/json.ts';
import type { Allowance, LeaseMessage, Refused, UpperBound } from './allowance.ts';
import type { Children } from './children.ts';
import type { Sql } from './limit-tables.ts';
import {
  estimateRequest,
  insertReservation,
  isSettled,
  type Needed,
  type Reservation,
  type ReserveRequest,
  readNeed,
  reservedFor,
} from './reservations.ts';

/** A holder decides about it as often as others must answer first: what has no room now may have it then. */
export interface Asking {
  /** Of the request; null: a child. */
  readonly id: string | null;
  /** The child; null: a request. */
  readonly child: string | null;
  /** The limits that KV lists for the key. */
  readonly listed: JsonObject | null;
  /** The keyed hash of the user's name. */
  readonly userHash?: string | undefined;
  /** Children of the child may hold something in advance. They return it first: the child is answered at once, and asks again. */
  readonly isAhead: boolean;
  /** Why needs were refused so far. */
  refused: ReadonlyMap<UpperBound, Refused>;
  /** For how many further requests allowance is leased in advance; null: as many as the holder's own requests are likely to need. */
  extra(): number | null;
  /** The UTC day in which all grants count; null: that of the first grant. */
  day(): string | null;
  /** The request has ended. */
  isEnded: boolean;
  /** What is granted would never be returned: the request has ended, or a later message has replaced what the child holds. */
  isOver(): boolean;
  /** What is not granted yet. Runs in a transaction. @param limits as they are stored @param own those that the holder enforces */
  needs(limits: Limits, own: Limits, now: number): readonly UpperBound[];
  /** Stores what is granted, and what is lent in advance. Runs in a transaction. @param before the status without it */
  take(
    granted: readonly UpperBound[],
    ahead: Allowance | null,
    before: LimitStatus,
    day: string,
    now: number,
  ): void;
}

export function askingRequest(sql: Sql, asked: ReserveRequest) {
  let request = asked;
  let needed: Needed | null = null;
  let outputTokens: number | null = null;
  const asking: Asking & { reserved(standing: LimitStatus): Reservation } = {
    ...{
      id: asked.id,
      child: null,
      listed: asked.limits ?? null,
      isAhead: false,
      isEnded: false,
      userHash: asked.userHash,
      refused: new Map(),
    },
    extra: () => null,
    // What is needed in addition to an earlier reservation counts in its day.
    day: () => needed?.need?.day ?? null,
    isOver: () => asking.isEnded,
    needs: (limits, own, now) => {
      request = estimateRequest(sql, asked, limits, now);
      outputTokens = outputLimitOf(limits, own, request.outputTokens);
      needed = isSettled(sql, asked.id) ? null : readNeed(sql, { ...request, outputTokens }, own);
      if (needed !== null) outputTokens = needed.outputTokens;
      return needed === null || needed.need === null ? [] : [needed.need];
    },
    take: (granted, _, before, day, now) => {
      if (needed !== null && granted.length > 0) insertReservation(sql, request, needed, before, now, day);
    },
    reserved: (standing) => reservedFor(request, outputTokens, standing),
  };
  return asking;
}

/** @param day of all grants; null: that of the first one */
export function askingChild(
  { user: child, seq, needs, extra, limits, isAhead = false }: LeaseMessage,
  children: Children,
  day: string | null,
) {
  let left = needs;
  let grantDay = day;
  let surplus: Allowance | null = null;
  const asking: Asking = {
    ...{ id: null, child, listed: limits ?? null, isAhead, isEnded: false, refused: new Map() },
    // Where something was refused, others need what would be leased in advance.
    extra: () => (asking.refused.size > 0 ? 0 : extra),
    day: () => grantDay,
    isOver: () => children.seqOf(child) !== seq,
    needs: () => left,
    take: (granted, ahead, _, at) => {
      if (granted.length === 0) return;
      children.hold(child, granted, ahead, at);
      left = left.filter((need) => !granted.includes(need));
      grantDay = at;
      surplus = ahead;
    },
  };
  return {
    asking,
    /** What the child gets; of each need why it is refused, or null. */
    result: () => ({
      day: grantDay,
      surplus,
      refusals: needs.map((need) => asking.refused.get(need) ?? null),
    }),
  };
}
