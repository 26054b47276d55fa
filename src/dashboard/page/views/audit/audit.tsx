/** The view of the audit: which keys were created, changed and revoked, by whom, from what to what. */
import { useState } from 'preact/hooks';
import type { AuditEntry, AuditPage } from '../../api/types.ts';
import { NONE } from '../../format/numbers.ts';
import { exactTime } from '../../format/times.ts';
import { isoTime, zoneName } from '../../format/zone.ts';
import { Refresh } from '../../parts/controls.tsx';
import { Name } from '../../parts/name.tsx';
import { Trouble } from '../../parts/problem.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { useLoad } from '../../state/load.ts';
import { goTo, type Params, pick } from '../../state/route.ts';
import { type KeyNames, useKeyNames, useSession } from '../../state/session.ts';

const FIRST = 100;
/** With each click on "Load more", up to the most that one response has. */
const FACTOR = 3;
const MAX = 1000;

export function Audit({ params }: { params: Params }) {
  const { api } = useSession();
  const names = useKeyNames();
  const [limit, setLimit] = useState(FIRST);
  const { key, team } = params;
  const loaded = useLoad<AuditPage>(
    (signal) =>
      api.get('/v1/admin/audit', { limit: String(limit), ...pick(params, ['key', 'team']) }, signal),
    [api, key, team, limit],
  );
  const { value, isLoading, reload } = loaded;
  const entries = value?.data ?? [];
  return (
    <>
      <div class="bar">
        {key !== undefined && (
          <button type="button" onClick={() => goTo('audit', params, { key: undefined })}>
            Only <bdi>{names.nameOf(key)}</bdi> ×
          </button>
        )}
        <Refresh view="audit" params={params} onRefresh={reload} />
      </div>
      <Trouble of={loaded} />
      {isLoading && value === null && <p class="hint">Loading …</p>}
      {value !== null && entries.length === 0 && (
        <div class="empty">
          <strong>No key was changed yet</strong>
          <p>
            Each key that is created, changed or revoked has an entry here for 400 days. It shows up within a
            minute.
          </p>
        </div>
      )}
      {entries.length > 0 && (
        <Table
          label="Audit"
          columns={columnsOf(names, params)}
          items={entries}
          idOf={({ id }) => id}
          searched={(entry) => [entry.actor, entry.key_id, nameOf(entry, names), wordsOf(entry)].join('\n')}
          note={
            value?.has_more === true &&
            `Search and order look at the ${entries.length} entries that are loaded.`
          }
        />
      )}
      {value?.has_more === true && (
        <p class="more">
          {limit < MAX ? (
            <button
              type="button"
              disabled={isLoading}
              onClick={() => setLimit(Math.min(MAX, limit * FACTOR))}
            >
              Load more
            </button>
          ) : (
            <span class="hint">The latest {MAX}. GET /v1/admin/audit has the earlier ones.</span>
          )}
        </p>
      )}
    </>
  );
}

const ACTIONS: Readonly<Record<string, string>> = {
  key_created: 'created',
  key_changed: 'changed',
  key_revoked: 'revoked',
  budget_added: 'added to the budget',
  team_created: 'team created',
  team_changed: 'team changed',
  team_deleted: 'team deleted',
};

export function columnsOf(names: KeyNames, params: Params): readonly Column<AuditEntry>[] {
  return [
    { head: `Time (${zoneName()})`, value: ({ time }) => isoTime(time), cell: ({ time }) => exactTime(time) },
    { head: 'By', look: 'name', value: ({ actor }) => actor, cell: ({ actor }) => <Name text={actor} /> },
    {
      head: 'Key',
      look: 'name',
      value: (entry) => nameOf(entry, names),
      cell: (entry) =>
        entry.key_id === undefined ? (
          <Name text={nameOf(entry, names)} title={entry.team} />
        ) : (
          <button
            type="button"
            class="link"
            onClick={() => goTo('audit', params, { key: entry.key_id })}
            title={entry.key_id}
          >
            <Name text={nameOf(entry, names)} title={entry.key_id} />
          </button>
        ),
    },
    { head: 'What', value: ({ action }) => ACTIONS[action] ?? action },
    {
      head: 'Change',
      look: 'limits',
      value: wordsOf,
      cell: (entry) => (
        <>
          {changesOf(entry).map((change) => (
            <div key={change}>
              <bdi>{change}</bdi>
            </div>
          ))}
        </>
      ),
    },
  ];
}

/** The name of the key at that time, or of today; of a team its name, or its id. */
function nameOf({ key_id, team, before, after }: AuditEntry, { nameOf: currentName }: KeyNames): string {
  const name = after?.name ?? before?.name;
  if (typeof name === 'string' && name !== '') return name;
  return key_id === undefined ? team : currentName(key_id);
}

function wordsOf(entry: AuditEntry): string {
  return changesOf(entry).join('; ');
}

/** Fields that every key has, in columns of their own, and those of a top-up that its entry has itself. */
const SHOWN = ['name', 'created_at'];
const OF_TOP_UP = ['id', 'time', 'actor'];

function changesOf({ action, before, after }: AuditEntry): readonly string[] {
  const fields = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  const isChange = action.endsWith('_changed');
  return [...fields].flatMap((field) => {
    const [was, is] = [before?.[field] ?? null, after?.[field] ?? null];
    if (isChange) return [`${field}: ${written(was)} → ${written(is)}`];
    const isShown = (action === 'budget_added' ? OF_TOP_UP : SHOWN).includes(field);
    return isShown || (was ?? is) === null ? [] : [`${field}: ${written(was ?? is)}`];
  });
}

function written(value: unknown): string {
  if (value === null || value === undefined) return NONE;
  if (Array.isArray(value)) return value.map(written).join(', ');
  if (typeof value !== 'object') return String(value);
  return Object.entries(value)
    .map(([name, one]) => `${name} ${written(one)}`)
    .join(', ');
}
