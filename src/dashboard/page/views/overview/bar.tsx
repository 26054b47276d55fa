/** What the overview shows: its range, its grouping, its currency and its filters. */
import { useEffect, useState } from 'preact/hooks';
import type { GroupName, RecordPage, Row } from '../../api/types.ts';
import { AddFilter, Chips, Folded, RangePicker, Refresh } from '../../parts/controls.tsx';
import { FILTERS, GROUP_LABELS, isTagGroup, TAG } from '../../state/groups.ts';
import { useLoad, within } from '../../state/load.ts';
import { type Range, readRange, spanOf } from '../../state/range.ts';
import { goTo, type Params, pick } from '../../state/route.ts';
import { useSession } from '../../state/session.ts';
import { FAILURES } from './metrics.ts';

const GROUPS = ['model', 'provider', 'key', 'status', 'error', 'user', 'session', 'app'] as const;
/** What a removed filter keeps. */
const KEPT = ['range', 'from', 'to', 'hour', 'by', 'metric', 'refresh'];

/** What the address chooses. */
export interface Choice {
  readonly range: Range;
  readonly groups: readonly GroupName[];
  readonly by: GroupName;
  /** Tags, before the name of one is chosen. */
  readonly isTagMissing: boolean;
  readonly filters: Params;
}

/** @param isAdmin others have one key, by which they neither group nor filter */
export function readChoice(params: Params, isAdmin: boolean): Choice {
  const chosen = params.by ?? '';
  // Failures are first asked for their causes.
  const usual = params.metric === FAILURES ? 'error' : 'model';
  const groups = GROUPS.filter((name) => name !== 'key' || isAdmin);
  return {
    range: readRange(params),
    groups,
    by: isTagGroup(chosen) ? chosen : (groups.find((name) => name === chosen) ?? usual),
    isTagMissing: chosen === TAG,
    filters: pick(
      params,
      FILTERS.filter((name) => name !== 'key' || isAdmin),
    ),
  };
}

interface BarProps {
  readonly params: Params;
  readonly choice: Choice;
  /** The first is chosen where the address names none. */
  readonly currencies: readonly string[];
  readonly currency: string;
  /** The rows on screen: filters offer their names. */
  readonly rows: readonly Row[];
  readonly nameOf: (key: string) => string;
  readonly onRefresh: () => void;
}

export function Bar({ params, choice, currencies, currency, rows, nameOf, onRefresh }: BarProps) {
  const { range, groups, by, filters } = choice;
  const chosen = params.by ?? '';
  return (
    <div class="bar">
      <RangePicker view="overview" params={params} range={range} />
      <label class="inline">
        By{' '}
        <select
          value={chosen.startsWith(TAG) ? TAG : by}
          onChange={(event) => goTo('overview', params, { by: event.currentTarget.value })}
        >
          {[...groups, TAG].map((name) => (
            <option key={name} value={name}>
              {GROUP_LABELS[name.replace(':', '')]}
            </option>
          ))}
        </select>
      </label>
      {chosen.startsWith(TAG) && <TagName params={params} range={range} />}
      <Folded>
        {currencies.length > 1 && (
          <label class="inline">
            In{' '}
            <select
              value={currency}
              onChange={(event) => goTo('overview', params, { currency: event.currentTarget.value })}
            >
              {currencies.map((known) => (
                <option key={known}>{known}</option>
              ))}
            </select>
          </label>
        )}
        <AddFilter
          view="overview"
          params={params}
          valuesOf={(name) => (by === name ? rows.map((row) => row[by] ?? '') : [])}
        />
      </Folded>
      <Refresh view="overview" params={params} onRefresh={onRefresh} />
      <Chips view="overview" params={{ ...filters, ...pick(params, KEPT) }} names={FILTERS} nameOf={nameOf} />
    </div>
  );
}

/** The tag that the requests are grouped by. Offers the tags of the latest requests, and takes the first where none is chosen. */
function TagName({ params, range }: { params: Params; range: Range }) {
  const { api } = useSession();
  const { value } = useLoad<RecordPage>(
    within(range, (signal) => api.get('/v1/usage/records', { ...spanOf(range), limit: '100' }, signal)),
    [api, JSON.stringify(spanOf(range))],
  );
  const names = [...new Set(value?.data.flatMap(({ tags = {} }) => Object.keys(tags)))].sort();
  const name = (params.by ?? '').slice(TAG.length);
  const [first] = names;
  const [text, setText] = useState(name);
  useEffect(() => setText(name), [name]);
  useEffect(() => {
    if (name === '' && first !== undefined) goTo('overview', params, { by: TAG + first });
  }, [name, first]);
  return (
    <>
      <input
        aria-label="Name of the tag"
        list="tags"
        size={12}
        placeholder="team"
        pattern="[a-z0-9_.\-]{1,32}"
        // In the state, because a render during typing would reset the field to the URL's text.
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
        onChange={({ currentTarget }) =>
          currentTarget.reportValidity() && goTo('overview', params, { by: TAG + currentTarget.value })
        }
      />
      <datalist id="tags">
        {names.map((known) => (
          <option key={known} value={known} />
        ))}
      </datalist>
      {name === '' && value !== null && names.length === 0 && (
        <span class="hint">The latest requests have no tags. Enter the name of a tag.</span>
      )}
    </>
  );
}
