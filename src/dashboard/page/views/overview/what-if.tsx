/** What the shown requests would have cost at other models: their tokens are known, and so are the prices in force. */
import { useState } from 'preact/hooks';
import type { List, Model, Pricing, Sums } from '../../api/types.ts';
import { change, money, NONE } from '../../format/numbers.ts';
import { Name } from '../../parts/name.tsx';
import { Trouble } from '../../parts/problem.tsx';
import { type Column, numberColumn, Table } from '../../parts/table.tsx';
import { useLoad } from '../../state/load.ts';
import { useSession } from '../../state/session.ts';

const PAGE = [15, 100] as const;
const PER_TOKENS = 1_000_000;

interface WhatIfProps {
  readonly total: Sums;
  readonly currency: string;
}

/** One model with what the requests would have cost there. */
interface Alternative {
  readonly id: string;
  readonly cost: number;
}

/**
 * The cost of these tokens at a price: the same share of the prompts is read from the cache and written to it, each prompt is as long as the
 * mean, and rates of peak hours do not apply. Null: a rate is unknown.
 */
function costAt(
  { requests, prompt_tokens, cached_tokens, cache_write_tokens, completion_tokens }: Sums,
  price: Pricing,
): number | null {
  const isLong =
    price.above !== undefined && prompt_tokens / Math.max(1, requests) > price.above.prompt_tokens;
  const { input, output, cached_input = input, cache_write = input } = isLong ? price.above : price;
  if (input === undefined || output === undefined || cached_input === undefined || cache_write === undefined)
    return null;
  const plain = Math.max(0, prompt_tokens - cached_tokens - cache_write_tokens);
  return (
    (plain * input +
      cached_tokens * cached_input +
      cache_write_tokens * cache_write +
      completion_tokens * output) /
    PER_TOKENS
  );
}

export function WhatIf({ total, currency }: WhatIfProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="foot" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>What if: the cost of these requests at other models</summary>
      {isOpen && <Alternatives {...{ total, currency }} />}
    </details>
  );
}

function Alternatives({ total, currency }: WhatIfProps) {
  const { api } = useSession();
  const loaded = useLoad<List<Model>>((signal) => api.get('/v1/models', { details: 'true' }, signal), [api]);
  const { value, isLoading } = loaded;
  const alternatives: readonly Alternative[] = (value?.data ?? []).flatMap(({ id, pricing }) => {
    const cost = pricing?.currency === currency ? costAt(total, pricing) : null;
    return cost === null ? [] : [{ id, cost }];
  });
  const paid = total.cost[currency] ?? 0;
  const columns: readonly Column<Alternative>[] = [
    {
      head: 'Model',
      look: 'name',
      isMain: true,
      value: ({ id }) => id,
      cell: ({ id }) => <Name text={id} />,
    },
    {
      ...numberColumn<Alternative>(
        'Cost',
        ({ cost }) => cost,
        (cost) => money(cost, currency),
      ),
      isMain: true,
    },
    {
      ...numberColumn<Alternative>('Difference', ({ cost }) => cost - paid),
      cell: ({ cost }) => {
        const text = change(cost, paid, false);
        return text === null ? NONE : `${cost > paid ? '▲' : '▼'} ${text}`;
      },
    },
  ];
  return (
    <>
      <Trouble of={loaded} />
      {value === null && isLoading && <p class="hint">Loading …</p>}
      {value !== null && (
        <>
          <p class="hint">
            They cost {money(paid, currency)}. Assumed: the same tokens, the same parts of the prompts read
            from the cache and written to it, prompts of their mean length, today's prices without rates of
            peak hours. Models with another currency or without a price are not listed.
          </p>
          {alternatives.length > 0 && (
            <Table
              label="What if"
              columns={columns}
              items={alternatives}
              idOf={({ id }) => id}
              sortedBy="Cost"
              page={PAGE}
              searched={({ id }) => id}
            />
          )}
        </>
      )}
    </>
  );
}
