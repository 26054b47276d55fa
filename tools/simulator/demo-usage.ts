/** Fetches the gateway's metered usage from its usage route. */
import { setTimeout } from 'node:timers/promises';
import type { GatewayAccess } from './demo-stream.ts';
import { decodeObject, type JsonObject, numberOf, objectOf, objectsOf, textOf } from './json.ts';
import { table } from './terminal.ts';

const RECORD_LIMIT_MS = 60_000;

export interface Metered {
  readonly rows: readonly JsonObject[];
  readonly total: JsonObject;
}

/** Waits for this number of records, because they are written after their streams end. */
export async function metered({ url, key }: GatewayAccess, requests: number): Promise<Metered> {
  const deadline = Date.now() + RECORD_LIMIT_MS;
  for (;;) {
    const headers = { authorization: `Bearer ${key}` };
    const response = await fetch(`${url}/v1/usage?group_by=provider,model`, { headers });
    const text = await response.text();
    if (!response.ok) throw new Error(`GET /v1/usage returned ${response.status} ${text}`);
    const report = decodeObject(text);
    const total = objectOf(report?.total);
    if ((numberOf(total.requests) ?? 0) >= requests || Date.now() > deadline) {
      return { rows: objectsOf(report?.data), total };
    }
    await setTimeout(100);
  }
}

const COUNTS = [
  ['requests', 'requests'],
  ['prompt', 'prompt_tokens'],
  ['completion', 'completion_tokens'],
  ['total', 'total_tokens'],
  ['cached', 'cached_tokens'],
  ['reasoning', 'reasoning_tokens'],
  ['estimated', 'estimated_requests'],
  ['failed', 'failed_requests'],
] as const;

export function usageTable({ rows, total }: Metered): string[] {
  const counts = (row: JsonObject) => [
    ...COUNTS.map(([, name]) => numberOf(row[name]) ?? 0),
    costText(objectOf(row.cost)),
  ];
  const lines = rows.map((row) => [textOf(row.provider), textOf(row.model), ...counts(row)]);
  return table(
    ['provider', 'model', ...COUNTS.map(([title]) => title), 'cost'],
    [...lines, ['total', '', ...counts(total)]],
  );
}

/** A cost in each currency, such as `$0.000123`; a dash where no price is known. */
function costText(cost: JsonObject): string {
  const amounts = Object.entries(cost).map(([currency, amount]) => {
    const text = (numberOf(amount) ?? 0).toFixed(6);
    return currency === 'USD' ? `$${text}` : `${text} ${currency}`;
  });
  return amounts.join(' + ') || '–';
}

/** The increase of each count: the record of one more request. */
export function growth(before: Metered, after: Metered): string {
  const grown = COUNTS.map(([title, name]) => [
    title,
    (numberOf(after.total[name]) ?? 0) - (numberOf(before.total[name]) ?? 0),
  ]);
  return grown.map(([title, by]) => `${title} +${by}`).join(', ');
}
