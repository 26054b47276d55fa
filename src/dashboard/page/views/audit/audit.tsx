/** The view of the audit: which keys were created, changed and revoked, by whom, from what to what. */
import { useState } from 'preact/hooks';
import type { AuditEntry, AuditPage } from '../../api/types.ts';
import { amount, NONE } from '../../format/numbers.ts';
import { dateAndTime, exactTime } from '../../format/times.ts';
import { isoTime, zoneName } from '../../format/zone.ts';
import { Refresh } from '../../parts/controls.tsx';
import { Name } from '../../parts/name.tsx';
import { Trouble } from '../../parts/problem.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { useLoad } from '../../state/load.ts';
import { goTo, type Params, pick } from '../../state/route.ts';
import { type KeyNames, useKeyNames, useSession, useTeams } from '../../state/session.ts';
import { MODES, periodInWords } from '../keys/budget.tsx';

/** The names of keys and of teams. */
export function useAuditNames(reloads: number): KeyNames {
  const names = useKeyNames(reloads);
  const teams = new Map(useTeams(reloads).map(({ id, name }) => [id, name]));
  return { ...names, nameOf: (id) => teams.get(id) ?? names.nameOf(id) };
}

const FIRST = 100;
/** With each click on "Load more", up to the most that one response has. */
const FACTOR = 3;
const MAX = 1000;

export function Audit({ params }: { params: Params }) {
  const { api } = useSession();
  const names = useAuditNames(0);
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
          searched={(entry) =>
            [entry.actor, entry.key_id, nameOf(entry, names), wordsOf(entry, names)].join('\n')
          }
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
    {
      head: `Time (${zoneName()})`,
      isMain: true,
      value: ({ time }) => isoTime(time),
      cell: ({ time }) => dateAndTime(time),
    },
    { head: 'By', look: 'name', value: ({ actor }) => actor, cell: ({ actor }) => <Name text={actor} /> },
    {
      head: 'Key or team',
      look: 'name',
      isMain: true,
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
    { head: 'What', isMain: true, value: ({ action }) => ACTIONS[action] ?? action },
    {
      head: 'Change',
      look: 'limits',
      value: (entry) => wordsOf(entry, names),
      cell: (entry) => (
        <>
          {changesOf(entry, names).map((change) => (
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
  return currentName(key_id ?? team);
}

function wordsOf(entry: AuditEntry, names: KeyNames): string {
  return changesOf(entry, names).join('; ');
}

/** Fields that every key has, in columns of their own, and those of a top-up that its entry has itself. */
const SHOWN = ['name', 'created_at'];
const OF_TOP_UP = ['id', 'time', 'actor'];

function changesOf({ action, before, after }: AuditEntry, { nameOf: named }: KeyNames): readonly string[] {
  const fields = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  const isChange = action.endsWith('_changed');
  return [...fields].flatMap((field) => {
    const [was, is] = [before?.[field] ?? null, after?.[field] ?? null];
    const write = (value: unknown) =>
      field === 'team' && typeof value === 'string' ? named(value) : written(value);
    if (isChange) return [`${labelOf(field)}: ${write(was)} → ${write(is)}`];
    const isShown = (action === 'budget_added' ? OF_TOP_UP : SHOWN).includes(field);
    return isShown || (was ?? is) === null ? [] : [`${labelOf(field)}: ${write(was ?? is)}`];
  });
}

/** Words for fields whose names in the API are technical. */
const LABELS: Readonly<Record<string, string>> = {
  ...{ rpm: 'requests a minute', tpm: 'tokens a minute', max_concurrent: 'requests at once' },
  ...{ max_output_tokens: 'max output tokens', max_users: 'users with an allowance of their own' },
  ...{ per_key: 'each key', per_user: 'each user', require_user: 'requires a user' },
  ...{ expires_at: 'expires', old_key_expires_at: 'old secret until', add: 'added', per: 'of each' },
  default: 'people whom no team lists',
};

function labelOf(field: string): string {
  return LABELS[field] ?? field;
}

const TIME = /^\d{4}-\d\d-\d\dT/;
/** What budgets count. */
const UNIT = /^([A-Z]{3}|tokens)$/;

function written(value: unknown): string {
  if (value === null || value === undefined) return NONE;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value)) return value.map(written).join(', ');
  if (typeof value !== 'object') {
    const text = String(value);
    return TIME.test(text) ? exactTime(text) : text;
  }
  const { per, mode, ...others }: Readonly<Record<string, unknown>> = { ...value };
  const parts = Object.entries(others).map(([name, one]) =>
    UNIT.test(name) ? amount(Number(one), name) : `${labelOf(name)} ${written(one)}`,
  );
  const period = typeof per === 'string' ? ` ${periodInWords(per)}` : '';
  return `${parts.join(', ')}${period}${MODES[String(mode)] ?? ''}`;
}
