/** Random sequences of calls to a key's ledger object: repeated, late and lost calls change no sum. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readLimitStatus } from '../../../src/ledger/limits/limit-tables.ts';
import { expire, settle, settleUnreserved } from '../../../src/ledger/limits/reservations.ts';
import { runsOf } from '../../random-run.ts';
import { MemorySql, MINUTE, NOW, used } from './memory-sql.ts';

const UPPER_BOUND = 100;
const LIMIT = 550;

type Step =
  | { readonly kind: 'reserve' | 'settle' | 'unreserved'; readonly id: number; readonly tokens: number }
  | { readonly kind: 'wait'; readonly minutes: number };

const id = fc.integer({ min: 0, max: 9 });
const tokens = fc.integer({ min: 0, max: UPPER_BOUND });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constantFrom('reserve', 'settle', 'unreserved'), id, tokens }),
  fc.record({ kind: fc.constant('wait'), minutes: fc.integer({ min: 0, max: 9 }) }),
);

/** The expected state of each request. */
type Known =
  | { readonly state: 'running'; readonly until: number }
  | { readonly state: 'expired' }
  | { readonly state: 'settled'; readonly tokens: number };

test('G2 G3 each request is charged once, and a hard budget is never exceeded', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const sql = new MemorySql({ budget: { tokens: LIMIT } });
      const known = new Map<number, Known>();
      let now = NOW;
      for (const step of steps) {
        if (step.kind === 'wait') {
          now += step.minutes * MINUTE;
          expire(sql, now);
          for (const [id, request] of known) {
            if (request.state === 'running' && request.until <= now) known.set(id, { state: 'expired' });
          }
          continue;
        }
        const { id, tokens } = step;
        const request = known.get(id);
        // The id of a request that has ended is never reserved again.
        if (step.kind === 'reserve' && (request === undefined || request.state === 'running')) {
          const { kind } = sql.reserve(`r${id}`, {}, now);
          const room = LIMIT - sumOf(known);
          expect(kind).toBe(request !== undefined || room >= UPPER_BOUND ? 'reserved' : 'refused');
          if (kind === 'reserved') known.set(id, request ?? { state: 'running', until: now + 11 * MINUTE });
        } else if (step.kind === 'settle' && request !== undefined) {
          settle(sql, `r${id}`, used(tokens), now);
          if (request.state !== 'settled') known.set(id, { state: 'settled', tokens });
        } else if (
          step.kind === 'unreserved' &&
          request?.state !== undefined &&
          request.state !== 'settled'
        ) {
          settleUnreserved(sql, `r${id}`, used(tokens), '2026-11-21', now);
          known.set(id, { state: 'settled', tokens });
        }
        const { budget } = readLimitStatus(sql, now);
        expect((budget?.spent ?? 0) + (budget?.reserved ?? 0)).toBe(sumOf(known));
        expect(sumOf(known)).toBeLessThanOrEqual(LIMIT);
        const running = [...known.values()].filter(({ state }) => state === 'running').length;
        expect(sql.count('reservations')).toBe(running);
      }
    }),
    { numRuns: runsOf(100, 500) },
  );
});

function sumOf(known: ReadonlyMap<number, Known>): number {
  return [...known.values()].reduce(
    (sum, request) => sum + (request.state === 'settled' ? request.tokens : UPPER_BOUND),
    0,
  );
}
