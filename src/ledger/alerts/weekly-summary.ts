/** The weekly summary to the operator: what the week that has just ended cost, and who spent most (G11). */
import { periodEnd, periodName } from '../../auth/key-limits.ts';
import { type KeyStore, readKey } from '../../auth/keys.ts';
import type { Ledger } from '../../metering/ledger.ts';
import { OTHER, type Report, type Sums } from '../../metering/report.ts';
import { DAY_MS, isoDay } from '../../metering/time.ts';
import type { OperatorAlert } from './operator-alerts.ts';

const WEEK_MS = 7 * DAY_MS;
/** Models and keys that it names: those with the largest costs. */
const MAX_NAMED = 5;

/**
 * The summary of the week that ends on the day of this time, or null where none does. Weeks end on Monday at 00:00 UTC.
 * @param now when the daily run was due, in ms since the epoch
 */
export async function weeklySummary(
  ledger: Pick<Ledger, 'report'>,
  store: Pick<KeyStore, 'get'>,
  now: number,
): Promise<OperatorAlert | null> {
  const toMs = (periodEnd('week', now) ?? 0) - WEEK_MS;
  if (now - toMs >= DAY_MS) return null;
  const week = { fromMs: toMs - WEEK_MS, toMs, keyId: null };
  const byModel = await ledger.report({ ...week, groups: ['model'] });
  if (byModel.kind === 'error') throw new Error(byModel.error.message);
  // With more keys than one report has, the summary names none.
  const byKey = await ledger.report({ ...week, groups: ['key'] });
  const models = largest(byModel.value, 'model').map(({ name: model, ...sums }) => ({ model, ...sums }));
  const keys = await Promise.all(
    (byKey.kind === 'error' ? [] : largest(byKey.value, 'key')).map(async ({ name: id, ...sums }) => ({
      ...{ key_id: id, name: await nameOf(store, id), ...sums },
    })),
  );
  const total = byModel.value.total;
  const period = periodName('week', week.fromMs);
  const [from, to] = [isoDay(week.fromMs), isoDay(toMs - DAY_MS)];
  const sentences = [
    `the week ${period} (${from} to ${to}): ${sumsText(total)}, ${total.failed_requests} failed`,
    ...listText(
      'Models',
      models.map((row) => [row.model, row]),
    ),
    ...listText(
      'Keys',
      keys.map((row) => [row.name ?? row.key_id, row]),
    ),
  ];
  return {
    event: 'weekly_summary',
    subject: period,
    silentMs: WEEK_MS,
    fields: {
      period,
      from,
      to,
      ...figuresOf(total),
      failed_requests: total.failed_requests,
      models,
      keys,
    },
    text: sentences.join('. '),
  };
}

/** The largest first; what is summed of all others comes last. */
function largest(report: Report, group: 'model' | 'key'): readonly Named[] {
  const isRest = ({ name }: Named) => (name === OTHER ? 1 : 0);
  return report
    .largest(MAX_NAMED)
    .map((row) => ({ name: row[group] ?? '', ...figuresOf(row) }))
    .sort((a, b) => isRest(a) - isRest(b) || costOf(b) - costOf(a) || b.requests - a.requests);
}

type Named = Figures & { readonly name: string };

type Figures = Pick<Sums, 'requests' | 'total_tokens' | 'cost'>;

function figuresOf({ requests, total_tokens, cost }: Figures): Figures {
  return { requests, total_tokens, cost };
}

/** Over all currencies, to compare sizes. */
function costOf({ cost }: Figures): number {
  return Object.values(cost).reduce((sum, amount) => sum + amount, 0);
}

function sumsText({ requests, total_tokens, cost }: Figures): string {
  return `${requests} requests, ${total_tokens} tokens, ${costText(cost)}`;
}

function costText(cost: Sums['cost']): string {
  const amounts = Object.entries(cost).map(([currency, amount]) => `${amount.toFixed(2)} ${currency}`);
  return amounts.join(' + ') || 'no known cost';
}

function listText(title: string, rows: readonly (readonly [string, Figures])[]): readonly string[] {
  if (rows.length === 0) return [];
  return [`${title}: ${rows.map(([name, { cost }]) => `${name} ${costText(cost)}`).join(', ')}`];
}

/** Null: it has none, or cannot be read now. */
async function nameOf(store: Pick<KeyStore, 'get'>, keyId: string): Promise<string | null> {
  const found = await readKey(store, keyId).catch(() => null);
  return found === null || found === 'unreadable' ? null : found.key.name;
}
