/** Groups and sums usage records for `GET /v1/usage`: a pure function of the records (M5). */
import { MAX_REPORT_ROWS } from '../canonical/limits.ts';
import type { RecordSummary } from './record.ts';

export const GROUPS = ['day', 'provider', 'model', 'route', 'status', 'key'] as const;
export type Group = (typeof GROUPS)[number];

export interface Sums {
  requests: number;
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  cached_tokens: number;
  reasoning_tokens: number;
  estimated_requests: number;
  /** Requests that did not finish: failed or timed out. A client that disconnected is no failure. */
  failed_requests: number;
  /** No prices are known yet: null, which is not the same as free. */
  cost: null;
}

export type Row = Partial<Record<Group, string>> & Sums;

const READ_GROUP: { readonly [G in Group]: (record: RecordSummary) => string } = {
  day: (record) => record.time.slice(0, 10),
  provider: (record) => record.provider,
  // As a client addresses it, so that two providers' models of one name stay apart.
  model: (record) => `${record.provider}/${record.model}`,
  route: (record) => record.route,
  status: (record) => record.status,
  key: (record) => record.key_id,
};

export class Report {
  readonly #groups: readonly Group[];
  readonly #rows = new Map<string, Row>();
  #isTooLarge = false;
  readonly total: Sums = emptySums();

  constructor(groups: readonly Group[]) {
    this.#groups = groups;
  }

  add(record: RecordSummary): void {
    const values = this.#groups.map((group) => READ_GROUP[group](record));
    const id = JSON.stringify(values);
    const known = this.#rows.get(id);
    if (known === undefined && this.#rows.size >= MAX_REPORT_ROWS) {
      this.#isTooLarge = true;
      return;
    }
    const row = known ?? { ...this.#groupFields(values), ...emptySums() };
    this.#rows.set(id, row);
    addTo(row, record);
    addTo(this.total, record);
  }

  /** There are more groups than a report may have: what is in it is not all. */
  get isTooLarge(): boolean {
    return this.#isTooLarge;
  }

  /** The rows in the order of their groups' values; one row of all where nothing was grouped. */
  get rows(): Row[] {
    return [...this.#rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
  }

  #groupFields(values: readonly string[]): Partial<Record<Group, string>> {
    return Object.fromEntries(this.#groups.map((group, i) => [group, values[i]]));
  }
}

function emptySums(): Sums {
  return {
    requests: 0,
    prompt_tokens: 0,
    completion_tokens: 0,
    total_tokens: 0,
    cached_tokens: 0,
    reasoning_tokens: 0,
    estimated_requests: 0,
    failed_requests: 0,
    cost: null,
  };
}

function addTo(sums: Sums, record: RecordSummary): void {
  sums.requests++;
  sums.prompt_tokens += record.prompt_tokens;
  sums.completion_tokens += record.completion_tokens;
  sums.total_tokens += record.total_tokens;
  sums.cached_tokens += record.cached_tokens ?? 0;
  sums.reasoning_tokens += record.reasoning_tokens ?? 0;
  if (record.estimated) sums.estimated_requests++;
  if (record.status === 'failed' || record.status === 'timed_out') sums.failed_requests++;
}
