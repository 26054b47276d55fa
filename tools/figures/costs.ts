/** What a deployment costs a month: the operations of its requests, at Cloudflare's prices. */

/** What Workers Paid costs a month, with what the items below include. */
const PLAN_DOLLARS = 5;

/** Requests of a developer with Claude Code a month: as of 500 developers who send 2 million. */
const REQUESTS_OF_DEVELOPER = 4000;

const MILLION = 1e6;

interface Item {
  readonly name: string;
  readonly unit: string;
  /** Of one request, in units. */
  readonly ofRequest: number;
  /** Units a month of the plan. */
  readonly included: number;
  /** For each unit beyond. */
  readonly dollars: number;
}

/** `LEDGER=object`, a key for each developer, each with less than two requests a minute: docs/ledgers.md#what-it-costs. */
const ITEMS: readonly Item[] = [
  // https://developers.cloudflare.com/workers/platform/pricing/ (2026-11-28)
  {
    name: 'requests of the Worker',
    unit: 'M',
    ofRequest: 1 / MILLION,
    included: 10,
    dollars: 0.3,
  },
  {
    name: 'CPU of the Worker, at most 15 ms each',
    unit: 'M ms',
    ofRequest: 15 / MILLION,
    included: 30,
    dollars: 0.02,
  },
  // https://developers.cloudflare.com/kv/platform/pricing/ (2026-11-28)
  {
    name: 'KV reads, at most two for each request',
    unit: 'M',
    ofRequest: 2 / MILLION,
    included: 10,
    dollars: 0.5,
  },
  // https://developers.cloudflare.com/durable-objects/platform/pricing/ (2026-11-28)
  {
    name: 'calls of objects: three for each request',
    unit: 'M',
    ofRequest: 3 / MILLION,
    included: 1,
    dollars: 0.15,
  },
  {
    name: 'rows written: nine for each request, nine for its user, session and app, one to delete it',
    unit: 'M',
    ofRequest: 19 / MILLION,
    included: 50,
    dollars: 1,
  },
  {
    name: 'duration: 20 ms with 128 MB for each call',
    unit: 'M GB-s',
    ofRequest: (3 * 0.02 * 0.128) / MILLION,
    included: 0.4,
    dollars: 12.5,
  },
  {
    name: 'stored: 35 days of records of 4.7 KB and once more 1.2 KB, and sums',
    unit: 'GB',
    ofRequest: 14 / (2 * MILLION),
    included: 5,
    dollars: 0.2,
  },
];

interface CostRow {
  readonly name: string;
  /** A text for each number of developers. */
  readonly cells: readonly string[];
}

/** The rows of the table of docs/sizes-and-costs.md. The last one is the sum with the plan. */
export function costRows(developers: readonly number[]): readonly CostRow[] {
  const requests = developers.map((count) => count * REQUESTS_OF_DEVELOPER);
  const used = ITEMS.map((item) => requests.map((count) => count * item.ofRequest));
  const billed = ITEMS.map(({ included, dollars }, at) =>
    (used[at] ?? []).map((units) => Math.max(0, units - included) * dollars),
  );
  const rows = ITEMS.map(({ name, unit }, at) => ({
    name,
    cells: (used[at] ?? []).map((units, column) => {
      const cost = billed[at]?.[column] ?? 0;
      return `${shown(units)} ${unit}${cost === 0 ? '' : `: ${dollarsOf(cost)}`}`;
    }),
  }));
  const sums = developers.map((_, column) => {
    const cost = billed.reduce((sum, cells) => sum + (cells[column] ?? 0), PLAN_DOLLARS);
    return `**${dollarsOf(cost)}**`;
  });
  return [...rows, { name: `with the plan, ${dollarsOf(PLAN_DOLLARS)}`, cells: sums }];
}

function dollarsOf(amount: number): string {
  return amount.toLocaleString('en', { style: 'currency', currency: 'USD' });
}

function shown(units: number): string {
  return units.toLocaleString('en', { maximumSignificantDigits: 2 });
}
