/** What the list of requests is filtered by: time, status, key, route, client, a search, and whole names. */
import { useEffect, useState } from 'preact/hooks';
import type { UsageRecord } from '../../api/types.ts';
import { STATUSES, statusWords } from '../../format/endings.ts';
import { AddFilter, Chips, Folded, RangePicker, Refresh } from '../../parts/controls.tsx';
import { FAILURE_FILTERS, TEXT_FILTERS } from '../../state/groups.ts';
import { readRange } from '../../state/range.ts';
import { goTo, type Params } from '../../state/route.ts';
import { type KeyNames, useSession } from '../../state/session.ts';
import { FAILED } from '../overview/metrics.ts';
import { valuesOf } from './columns.tsx';

/** Refused requests have counts, but no records. */
export const REFUSED = 'refused';
const TRUNCATED = 'truncated';
const FAILURE_LABELS: Readonly<Record<string, string>> = { fault: 'Fault of', error: 'Error' };
const ID = /^[0-9a-f-]{36}$/;

interface FiltersProps {
  readonly params: Params;
  readonly names: KeyNames;
  /** Those on screen: their routes and clients can be chosen. */
  readonly records: readonly UsageRecord[];
  readonly onRefresh: () => void;
}

export function Filters({ params, names, records, onRefresh }: FiltersProps) {
  const { isAdmin } = useSession();
  return (
    <div class="bar">
      <RangePicker view="requests" params={params} range={readRange(params)} />
      <Folded>
        <StatusFilter params={params} />
        {isAdmin && <KeyFilter params={params} names={names} />}
        <SearchField params={params} />
        <ChoiceFilter
          label="Route"
          name="route"
          values={['chat', ...records.map(({ route }) => route)]}
          params={params}
        />
        <ChoiceFilter
          label="Client"
          name="client"
          values={['chat', ...records.map(({ client }) => client)]}
          params={params}
        />
        {FAILURE_FILTERS.map((name) => (
          <ChoiceFilter
            key={name}
            label={FAILURE_LABELS[name] ?? name}
            name={name}
            values={records.flatMap((record) => valuesOf(record, name))}
            params={params}
          />
        ))}
        <AddFilter
          view="requests"
          params={params}
          valuesOf={(name) => records.flatMap((record) => valuesOf(record, name))}
        />
      </Folded>
      <Refresh view="requests" params={params} onRefresh={onRefresh} />
      <Chips view="requests" params={params} names={[...TEXT_FILTERS, 'team']} nameOf={names.nameOf} />
    </div>
  );
}

function StatusFilter({ params }: { params: Params }) {
  const choose = (value: string) =>
    goTo(
      'requests',
      params,
      value === TRUNCATED
        ? { status: undefined, truncated: 'true' }
        : { status: value, truncated: undefined },
    );
  return (
    <label class="inline">
      Status{' '}
      <select
        value={params.truncated ? TRUNCATED : (params.status ?? '')}
        onChange={({ currentTarget }) => choose(currentTarget.value)}
      >
        <option value="">any</option>
        {[...STATUSES, FAILED, TRUNCATED, REFUSED].map((status) => (
          <option key={status} value={status}>
            {statusWords(status)}
          </option>
        ))}
      </select>
    </label>
  );
}

function KeyFilter({ params, names: { keys } }: Pick<FiltersProps, 'params' | 'names'>) {
  return (
    <label class="inline">
      Key{' '}
      <select
        value={params.key ?? ''}
        onChange={({ currentTarget }) => goTo('requests', params, { key: currentTarget.value })}
      >
        <option value="">any</option>
        {params.key && !keys.some((key) => key.id === params.key) && <option>{params.key}</option>}
        {keys.map((key) => (
          <option key={key.id} value={key.id}>
            {key.name || key.id}
          </option>
        ))}
      </select>
    </label>
  );
}

/** For a part of a name, or a whole id, which opens its record. */
function SearchField({ params }: { params: Params }) {
  // In the state, because a render during typing would reset the field to the URL's text.
  const [search, setSearch] = useState('');
  useEffect(() => setSearch(params.search ?? ''), [params.search]);
  const find = (text: string) =>
    goTo('requests', params, ID.test(text) ? { id: text } : { search: text.replace(/\*$/, '') });
  return (
    <label class="inline">
      Search{' '}
      <input
        type="search"
        size={24}
        placeholder="part of a name or id"
        value={search}
        onInput={({ currentTarget }) => setSearch(currentTarget.value)}
        onChange={({ currentTarget }) => find(currentTarget.value.trim())}
      />
    </label>
  );
}

interface ChoiceFilterProps {
  readonly label: string;
  readonly name: string;
  readonly values: readonly string[];
  readonly params: Params;
}

function ChoiceFilter({ label, name, values, params }: ChoiceFilterProps) {
  const chosen = params[name] ?? '';
  return (
    <label class="inline">
      {label}{' '}
      <select
        value={chosen}
        onChange={({ currentTarget }) => goTo('requests', params, { [name]: currentTarget.value })}
      >
        <option value="">any</option>
        {[...new Set([...values, ...(chosen === '' ? [] : [chosen])])].sort().map((value) => (
          <option key={value}>{value}</option>
        ))}
      </select>
    </label>
  );
}
