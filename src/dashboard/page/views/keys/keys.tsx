/** The view of all keys and teams, their limits and budgets, with dialogs that create, change, disable, rotate and revoke a key. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { curlOf } from '../../api/fetch-api.ts';
import type { Answer } from '../../api/problem.ts';
import type { Key, Keys as KeyList, NewKey, Report, RevokedKey, Team, UsageToken } from '../../api/types.ts';
import { count, money, NONE, WAITING } from '../../format/numbers.ts';
import { date, exactTime, utcDay } from '../../format/times.ts';
import { utcDayOf } from '../../format/zone.ts';
import { CopyButton, Refresh } from '../../parts/controls.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { type Action, Menu } from '../../parts/menu.tsx';
import { describe, failureWords, Trouble } from '../../parts/problem.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { useLoad } from '../../state/load.ts';
import { goTo, linkTo, type Params } from '../../state/route.ts';
import { useSession, useTeams } from '../../state/session.ts';
import { isOfLive, LIVE_NAME } from '../live/live-key.ts';
import { budgetsOf } from './budget.tsx';
import { budgetColumn, LIMITS, nameColumn } from './columns.tsx';
import { KeyForm } from './key-form.tsx';
import { KeyPage } from './key-page.tsx';
import { TeamPage, Teams } from './teams.tsx';
import { TokenForm, UsageTokens } from './usage-tokens.tsx';

type Open =
  | { readonly kind: 'new' | 'new token' | 'new team' }
  | { readonly kind: 'made' | 'changed'; readonly key: NewKey }
  | { readonly kind: 'change'; readonly key: Key }
  | { readonly kind: 'switch' | 'rotate' | 'top up'; readonly key: Key }
  | { readonly kind: 'change team' | 'top up team' | 'delete team'; readonly team: Team }
  | { readonly kind: 'revoke'; readonly key: Pick<Key, 'id' | 'name'> };

const PAGE = [50, 50] as const;
const DAY_MS = 86_400_000;
/** Over how many days the view sums what keys spent. */
const USED_DAYS = 30;
/** Over how many days it looks for the last use: the most of these whose days of all keys one report can have. */
const LAST_DAYS = [USED_DAYS, 7, 1] as const;
/** The rows of a report. */
const MAX_ROWS = 10_000;

export function Keys({ params }: { params: Params }) {
  const { api } = useSession();
  /** Incremented to load the keys and their budgets again. */
  const [reloads, setReloads] = useState(0);
  const loaded = useLoad<KeyList>((signal) => api.get('/admin/keys', {}, signal), [api], reloads);
  const { value, problem, isLoading } = loaded;
  const [open, setOpen] = useState<Open | null>(null);
  /** Changes made here: KV is eventually consistent, so the next list may not have them yet. */
  const [done, setDone] = useState<ReadonlyMap<string, Key | null>>(new Map());
  /** Created here. */
  const [made, setTokens] = useState<readonly UsageToken[]>([]);
  const listed = value?.tokens ?? [];
  const tokens = [...made.filter(({ id }) => listed.every((one) => one.id !== id)), ...listed].filter(
    ({ id }) => done.get(id) !== null,
  );
  const used = useUse(reloads);
  /** Those too. */
  const [doneTeams, setDoneTeams] = useState<ReadonlyMap<string, Team | null>>(new Map());
  const teams = merge(useTeams(reloads), doneTeams);
  const teamOf = (id: string | undefined) => teams.find((team) => team.id === id);
  const all = merge(value?.data ?? [], done);
  const [hasLive, setLive] = useState(false);
  const keys = all.filter((key) => hasLive || !isOfLive(key));
  const liveKeys = all.filter(isOfLive).length;
  const units = value?.budget_units ?? [];
  const note = (id: string, key: Key | null) => setDone((before) => new Map(before).set(id, key));
  const noteTeam = (id: string, team: Team | null) => {
    setDoneTeams((before) => new Map(before).set(id, team));
    setOpen(null);
  };
  const chosen = params.id === undefined ? undefined : all.find(({ id }) => id === params.id);
  const team = teamOf(params.team);
  const list = (
    <>
      <div class="bar">
        <button type="button" class="primary" onClick={() => setOpen({ kind: 'new' })}>
          Create key
        </button>
        <button type="button" onClick={() => setOpen({ kind: 'new team' })}>
          Create team
        </button>
        <button type="button" onClick={() => setOpen({ kind: 'new token' })}>
          Create token
        </button>
        {keys.length > 0 && <span class="hint">{count(keys.length, 'key')}</span>}
        {liveKeys > 0 && (
          <label class="inline check">
            <input type="checkbox" checked={hasLive} onChange={() => setLive(!hasLive)} />
            {count(liveKeys, 'temporary key')} of Live
          </label>
        )}
        <Refresh view="keys" params={params} onRefresh={() => setReloads(reloads + 1)} />
      </div>
      <Trouble of={loaded} />
      {isLoading && value === null && <p class="hint">Loading …</p>}
      {keys.length === 0 && !isLoading && problem === null && (
        <div class="empty">
          <strong>There are no keys yet</strong>
          <p>Clients call this deployment with a key. Each can have its own models, limits and budget.</p>
        </div>
      )}
      <Teams teams={teams} keys={all} actionsOf={(one) => actionsOfTeam(one, setOpen)} reloads={reloads} />
      {keys.length > 0 && (
        <Table
          title={teams.length > 0}
          label="Keys"
          columns={columnsOf(keys, setOpen, used, reloads)}
          items={keys}
          page={PAGE}
          idOf={({ id }) => id}
          searched={({ id, name, user = '', tags = {} }) =>
            [id, name, user, ...Object.values(tags)].join('\n')
          }
          lookOf={(key) => (isExpired(key) || key.disabled ? 'over' : '')}
          onOpen={({ id }) => goTo('keys', {}, { id })}
          unfolds
        />
      )}
      <UsageTokens
        tokens={tokens}
        nameOf={(id) => [...all, ...teams].find((one) => one.id === id)?.name || id}
        onRevoke={(token) => setOpen({ kind: 'revoke', key: token })}
      />
      <RevokedKeys keys={(value?.revoked ?? []).filter(({ name }) => hasLive || name !== LIVE_NAME)} />
    </>
  );
  return (
    <>
      {team !== undefined ? (
        <TeamPage
          of={team}
          keys={all.filter((key) => key.team === team.id)}
          actions={actionsOfTeam(team, setOpen)}
          reloads={reloads}
        />
      ) : chosen !== undefined ? (
        <KeyPage
          of={chosen}
          teamName={teamOf(chosen.team)?.name}
          actions={actionsOf(chosen, setOpen)}
          reloads={reloads}
        />
      ) : params.id !== undefined && value !== null ? (
        <div class="empty">
          <strong>There is no such key</strong>
          <p>
            <bdi>{params.id}</bdi> was revoked, or never existed: <a href={linkTo('keys', {})}>all keys</a>
          </p>
        </div>
      ) : (
        list
      )}
      {open?.kind === 'new' && (
        <KeyForm<NewKey>
          before={null}
          path="/admin/keys"
          {...{ units, teams }}
          onClose={() => setOpen(null)}
          onDone={(made) => {
            const { key: _, warnings: __, ...listed } = made;
            note(made.id, listed);
            setOpen({ kind: 'made', key: made });
          }}
        />
      )}
      {open?.kind === 'new token' && (
        <TokenForm
          teams={teams}
          onClose={() => setOpen(null)}
          onDone={(made) => {
            setTokens((before) => [made, ...before]);
            setOpen(null);
          }}
        />
      )}
      {open?.kind === 'made' && <CreatedKey made={open.key} onClose={() => setOpen(null)} />}
      {open?.kind === 'changed' && (
        <Dialog title="The key was changed" onClose={() => setOpen(null)}>
          <Warnings of={open.key} />
        </Dialog>
      )}
      {open?.kind === 'change' && (
        <KeyForm<NewKey>
          before={open.key}
          path="/admin/keys"
          {...{ units, teams }}
          onClose={() => setOpen(null)}
          onDone={(changed) => {
            const { warnings, ...listed } = changed;
            note(changed.id, listed);
            setOpen(warnings === undefined ? null : { kind: 'changed', key: changed });
          }}
        />
      )}
      {open?.kind === 'switch' && (
        <Switch
          of={open.key}
          onClose={() => setOpen(null)}
          onDone={(changed) => {
            note(changed.id, changed);
            setOpen(null);
          }}
        />
      )}
      {open?.kind === 'rotate' && (
        <Rotate
          of={open.key}
          onClose={() => setOpen(null)}
          onDone={(rotated) => {
            const { key: _, warnings: __, ...listed } = rotated;
            note(rotated.id, listed);
            setOpen({ kind: 'made', key: rotated });
          }}
        />
      )}
      {open?.kind === 'top up' && (
        <TopUp
          of={open.key}
          path="/v1/admin/keys"
          onClose={() => setOpen(null)}
          onDone={() => {
            setReloads(reloads + 1);
            setOpen(null);
          }}
        />
      )}
      {(open?.kind === 'new team' || open?.kind === 'change team') && (
        <KeyForm<Team>
          before={open.kind === 'change team' ? open.team : null}
          path="/v1/admin/teams"
          units={units}
          onClose={() => setOpen(null)}
          onDone={(made) => noteTeam(made.id, made)}
        />
      )}
      {open?.kind === 'top up team' && (
        <TopUp
          of={open.team}
          path="/v1/admin/teams"
          onClose={() => setOpen(null)}
          onDone={() => {
            setReloads(reloads + 1);
            setOpen(null);
          }}
        />
      )}
      {open?.kind === 'delete team' && (
        <DeleteTeam
          of={open.team}
          onClose={() => setOpen(null)}
          onDone={() => {
            noteTeam(open.team.id, null);
            goTo('keys', {});
          }}
        />
      )}
      {open?.kind === 'revoke' && (
        <Revoke
          of={open.key}
          onClose={() => setOpen(null)}
          onDone={() => {
            note(open.key.id, null);
            setOpen(null);
          }}
        />
      )}
    </>
  );
}

function RevokedKeys({ keys }: { keys: readonly RevokedKey[] }) {
  if (keys.length === 0) return null;
  return (
    <details>
      <summary>{count(keys.length, 'revoked key')}</summary>
      <Table
        label="Revoked keys"
        columns={REVOKED}
        items={keys}
        page={PAGE}
        idOf={({ id }) => id}
        searched={({ id, name }) => `${id}\n${name}`}
      />
    </details>
  );
}

/** A revoked key has no page: its name leads to its usage. */
const REVOKED: readonly Column<RevokedKey>[] = [
  nameColumn('Name', (key) => linkTo('overview', { key })),
  { head: 'Created', value: ({ created_at }) => created_at, cell: ({ created_at }) => date(created_at) },
  { head: 'Revoked', value: ({ revoked_at }) => revoked_at, cell: ({ revoked_at }) => date(revoked_at) },
  {
    head: 'Audit',
    look: 'actions',
    cell: ({ id, name }) => (
      <a href={linkTo('audit', { key: id })} aria-label={`Audit of ${name || id}`}>
        Audit
      </a>
    ),
  },
];

/** The listed keys, or teams, with the changes made here (null: revoked), latest first. */
function merge<Item extends Pick<Key, 'id' | 'created_at'>>(
  listed: readonly Item[],
  done: ReadonlyMap<string, Item | null>,
): Item[] {
  const byId = new Map(listed.map((key) => [key.id, key]));
  for (const [id, key] of done) {
    if (key === null) byId.delete(id);
    else byId.set(id, key);
  }
  return [...byId.values()].sort((a, b) => (a.created_at > b.created_at ? -1 : 1));
}

/** What keys spent and when they were last used, by their ids. Null: not known. */
interface KeysUse {
  readonly spent: ReadonlyMap<string, Readonly<Record<string, number>>> | null;
  readonly lastDays: ReadonlyMap<string, string> | null;
  /** Over how many days the last use was looked for. */
  readonly days: number;
  /** In place of what is not known. */
  readonly unknown: string;
}

function useUse(reloads: number): KeysUse {
  const { api } = useSession();
  const read = (days: number, group_by: string, signal: AbortSignal) => {
    const now = Date.now();
    const span = { from: utcDayOf(now - (days - 1) * DAY_MS), to: utcDayOf(now + DAY_MS) };
    return api.get<Report>('/v1/usage', { ...span, group_by }, signal);
  };
  const sums = useLoad<Report>((signal) => read(USED_DAYS, 'key', signal), [api], reloads);
  const active = sums.value?.data.length ?? null;
  const days = LAST_DAYS.find((some) => some * (active ?? 0) <= MAX_ROWS) ?? 1;
  const last = useLoad<Pick<Report, 'data'> | null>(
    async (signal) => (active === null ? NOT_READ : read(days, 'key,day', signal)),
    [api, active === null, days],
    reloads,
  );
  const lastDays = new Map<string, string>();
  for (const { key = '', day = '' } of last.value?.data ?? [])
    if (day > (lastDays.get(key) ?? '')) lastDays.set(key, day);
  return {
    spent: sums.value && new Map(sums.value.data.map(({ key = '', cost }) => [key, cost])),
    lastDays: active === null || last.value === null ? null : lastDays,
    days,
    unknown: sums.isLoading || (active !== null && last.isLoading) ? WAITING : NONE,
  };
}

const NOT_READ: Answer<null> = { kind: 'answer', value: null };

function isExpired({ expires_at }: Key): boolean {
  return expires_at !== null && Date.parse(expires_at) <= Date.now();
}

/** The columns of what keys fix for their requests, shown if any key does so. */
const facts: readonly Column<Key>[] = [
  {
    head: 'User',
    look: 'name',
    value: ({ user }) => user,
    cell: ({ user }) => user && <bdi title={user}>{user}</bdi>,
  },
  {
    head: 'Tags',
    look: 'short',
    value: ({ tags = {} }) =>
      Object.entries(tags)
        .map(([name, value]) => `${name}=${value}`)
        .join(', '),
  },
];

function columnsOf(
  keys: readonly Key[],
  onOpen: (open: Open) => void,
  { spent, lastDays, days, unknown }: KeysUse,
  reloads: number,
): readonly Column<Key>[] {
  const spentOf = ({ id }: Key) => Object.entries(spent?.get(id) ?? {});
  return [
    nameColumn('Name', (id) => linkTo('keys', {}, { id })),
    {
      head: `Spent, ${USED_DAYS} d`,
      look: 'num',
      isMain: true,
      unit: `in ${USED_DAYS} d`,
      value: (key) => spentOf(key)[0]?.[1],
      cell: (key) =>
        spentOf(key)
          .map(([currency, amount]) => money(amount, currency))
          .join(', ') || (spent === null ? unknown : NONE),
    },
    {
      head: 'Last used',
      value: ({ id }) => lastDays?.get(id),
      cell: ({ id }) => {
        const day = lastDays?.get(id);
        if (day !== undefined) return day === utcDayOf(Date.now()) ? 'today' : utcDay(day);
        return <span class="hint">{lastDays === null ? unknown : `not in ${days} d`}</span>;
      },
    },
    budgetColumn('/admin/keys', reloads),
    LIMITS,
    ...facts.filter(({ value }) => keys.some((key) => value?.(key))),
    {
      head: 'Models',
      look: 'name',
      value: ({ models }) => models?.join(', ') ?? 'all',
      cell: ({ models }) => {
        const text = models?.join(', ') ?? 'all';
        return <bdi title={text}>{text}</bdi>;
      },
    },
    { head: 'Created', value: ({ created_at }) => created_at, cell: ({ created_at }) => date(created_at) },
    {
      head: 'Expires',
      value: ({ expires_at }) => expires_at,
      cell: (key) => (
        <>
          {key.expires_at === null ? 'never' : (isExpired(key) ? 'expired ' : '') + date(key.expires_at)}
          {key.disabled && <span class="badge">disabled</span>}
          {key.old_key_expires_at && (
            <span class="hint" title={exactTime(key.old_key_expires_at)}>
              {' '}
              old secret until {date(key.old_key_expires_at)}
            </span>
          )}
        </>
      ),
    },
    {
      head: 'Actions',
      look: 'actions',
      cell: (key) => (
        <Menu name={`Actions of ${key.name || key.id}`} actions={actionsOf(key, onOpen)}>
          ⋯
        </Menu>
      ),
    },
  ];
}

function actionsOf(key: Key, onOpen: (open: Open) => void): readonly Action[] {
  const action = (label: string, kind: 'change' | 'top up' | 'switch' | 'rotate' | 'revoke'): Action => ({
    label,
    name: `${label} ${key.name || key.id}`,
    isDangerous: kind === 'revoke',
    act: () => onOpen({ kind, key }),
  });
  return [
    action('Change', 'change'),
    ...(key.budget === undefined ? [] : [action('Top up', 'top up')]),
    action(key.disabled ? 'Enable' : 'Disable', 'switch'),
    action('Rotate', 'rotate'),
    action('Revoke', 'revoke'),
  ];
}

function actionsOfTeam(team: Team, onOpen: (open: Open) => void): readonly Action[] {
  const action = (label: string, kind: 'change team' | 'top up team' | 'delete team'): Action => ({
    label,
    name: `${label} ${team.name}`,
    isDangerous: kind === 'delete team',
    act: () => onOpen({ kind, team }),
  });
  return [
    action('Change', 'change team'),
    ...(team.budget === undefined ? [] : [action('Top up', 'top up team')]),
    action('Delete', 'delete team'),
  ];
}

const EXAMPLE = { model: 'provider/model', messages: [{ role: 'user', content: 'Hello' }], stream: true };

function CreatedKey({ made, onClose }: { made: NewKey; onClose: () => void }) {
  return (
    <Dialog title="The new key" onClose={onClose} isKept>
      <p>
        Copy it now: it is <strong>not shown again</strong>.
      </p>
      <p class="secret">
        <output class="code">{made.key}</output>
        <CopyButton text={made.key} what="the key" />
        <CopyButton text={curlOf(made.key, EXAMPLE)} label="Copy as curl" />
      </p>
      <Warnings of={made} />
      <p class="hint">It can take up to a minute until the key works everywhere.</p>
      <footer>
        <button type="button" onClick={onClose}>
          I have copied it
        </button>
      </footer>
    </Dialog>
  );
}

/** Reasons why a created or changed key can't be used. */
function Warnings({ of: { warnings = [] } }: { of: NewKey }) {
  if (warnings.length === 0) return null;
  return (
    <div class="problem" role="alert">
      <strong>Check this key</strong>
      {warnings.map(({ message }) => (
        <p key={message}>
          <bdi>{message}.</bdi>
        </p>
      ))}
    </div>
  );
}

interface ConfirmProps {
  readonly title: string;
  readonly of: Pick<Key, 'id' | 'name'>;
  readonly action: string;
  readonly isDangerous?: boolean;
  readonly children: ComponentChildren;
  readonly onClose: () => void;
  /** @returns why it failed, or null */
  readonly onConfirm: () => Promise<string | null>;
}

/** A dialog that asks before a key is changed. */
function Confirm({ title, of: key, action, isDangerous, children, onClose, onConfirm }: ConfirmProps) {
  const [failure, setFailure] = useState<string | null>(null);
  return (
    <Dialog title={title} onClose={onClose}>
      <p>
        <bdi>
          <strong>{key.name || key.id}</strong>
        </bdi>
      </p>
      {children}
      {failure !== null && (
        <p class="problem" role="alert">
          {failure}
        </p>
      )}
      <footer>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button
          type="button"
          class={isDangerous ? 'danger' : 'primary'}
          onClick={() => void onConfirm().then(setFailure)}
        >
          {action}
        </button>
      </footer>
    </Dialog>
  );
}

interface DoneProps<Result> {
  readonly of: Key;
  readonly onClose: () => void;
  readonly onDone: (result: Result) => void;
}

function Switch({ of: key, onClose, onDone }: DoneProps<Key>) {
  const { api } = useSession();
  const set = async () => {
    const answer = await api.send<NewKey>('PATCH', `/admin/keys/${key.id}`, { disabled: !key.disabled });
    if (answer.kind === 'problem') return describe(answer.problem).title;
    const { warnings: _, ...changed } = answer.value;
    onDone(changed);
    return null;
  };
  return (
    <Confirm
      title={key.disabled ? 'Enable this key?' : 'Disable this key?'}
      action={key.disabled ? 'Enable' : 'Disable'}
      of={key}
      onClose={onClose}
      onConfirm={set}
    >
      <p>
        {key.disabled
          ? 'Its requests are accepted again within a minute.'
          : 'Its requests are refused within a minute, until it is enabled again. Requests that run are finished.'}
      </p>
    </Confirm>
  );
}

const MAX_OVERLAP_HOURS = 720;

function Rotate({ of: key, onClose, onDone }: DoneProps<NewKey>) {
  const { api } = useSession();
  const [hours, setHours] = useState('24');
  const rotate = async () => {
    const body = { overlap_hours: Number(hours) };
    const answer = await api.send<NewKey>('POST', `/v1/admin/keys/${key.id}/rotate`, body);
    if (answer.kind === 'problem') return failureWords(answer.problem);
    onDone(answer.value);
    return null;
  };
  return (
    <Confirm title="Make a new secret?" action="Rotate" of={key} onClose={onClose} onConfirm={rotate}>
      <p>The key keeps its limits, its history and its id. The old secret stays valid for the overlap.</p>
      <label>
        Overlap in hours{' '}
        <input
          type="number"
          min="0"
          max={MAX_OVERLAP_HOURS}
          value={hours}
          onInput={({ currentTarget }) => setHours(currentTarget.value)}
        />
      </label>
      <p class="hint">With 0 the old secret is refused within a minute.</p>
      {key.old_key_expires_at && <p>An earlier rotation still overlaps. Its old secret ends now.</p>}
    </Confirm>
  );
}

const IN_PERIOD: Readonly<Record<string, string>> = {
  day: 'today',
  week: 'this week',
  month: 'this month',
  total: 'in total',
};

interface TopUpProps {
  readonly of: Pick<Key, 'id' | 'name' | 'budget'>;
  readonly path: '/v1/admin/keys' | '/v1/admin/teams';
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Raises the current period of one budget of a key, or of a team. */
function TopUp({ of: key, path, onClose, onDone }: TopUpProps) {
  const { api } = useSession();
  const choices = budgetsOf(key.budget).map(({ per, mode: _, ...amounts }) => ({
    unit: Object.keys(amounts)[0] ?? '',
    per,
  }));
  const [draft, setDraft] = useState({ amount: '', note: '', choice: '0' });
  // A second click adds nothing.
  const [id] = useState(() => crypto.randomUUID());
  const add = async () => {
    const { unit = '', per } = choices[Number(draft.choice)] ?? {};
    const body = { add: { [unit]: Number(draft.amount) }, per, id, note: draft.note };
    const answer = await api.send('POST', `${path}/${key.id}/budget`, body);
    if (answer.kind === 'problem') return failureWords(answer.problem);
    onDone();
    return null;
  };
  const set = (fields: Partial<typeof draft>) => setDraft((before) => ({ ...before, ...fields }));
  return (
    <Confirm title="Add to the budget?" action="Add" of={key} onClose={onClose} onConfirm={add}>
      <label>
        Amount{' '}
        <input
          type="number"
          min="0"
          step="any"
          value={draft.amount}
          onInput={({ currentTarget }) => set({ amount: currentTarget.value })}
        />
      </label>
      <label>
        For{' '}
        <select value={draft.choice} onChange={({ currentTarget }) => set({ choice: currentTarget.value })}>
          {choices.map(({ unit, per }, i) => (
            <option key={unit + per} value={String(i)}>
              {unit} {IN_PERIOD[per]}
            </option>
          ))}
        </select>
      </label>
      <label>
        Note{' '}
        <input
          maxLength={200}
          value={draft.note}
          onInput={({ currentTarget }) => set({ note: currentTarget.value })}
        />
      </label>
      <p class="hint">Only this period is raised. The next one has the usual budget again.</p>
    </Confirm>
  );
}

interface RevokeProps {
  readonly of: Pick<Key, 'id' | 'name'>;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function Revoke({ of: key, onClose, onDone }: RevokeProps) {
  const { api } = useSession();
  const revoke = async () => {
    const answer = await api.send('DELETE', `/admin/keys/${key.id}`);
    const isGone =
      answer.kind === 'problem' && answer.problem.kind === 'refused' && answer.problem.status === 404;
    if (answer.kind === 'problem' && !isGone) return describe(answer.problem).title;
    onDone();
    return null;
  };
  return (
    <Confirm
      title="Revoke this key?"
      action="Revoke"
      isDangerous
      of={key}
      onClose={onClose}
      onConfirm={revoke}
    >
      <p>Its requests are refused within a minute. This can't be undone. Its usage stays in the reports.</p>
    </Confirm>
  );
}

/** A team that has keys is not deleted: the API says how many. */
function DeleteTeam({ of: team, onClose, onDone }: RevokeProps) {
  const { api } = useSession();
  const remove = async () => {
    const answer = await api.send('DELETE', `/v1/admin/teams/${team.id}`);
    if (answer.kind === 'problem') return failureWords(answer.problem);
    onDone();
    return null;
  };
  return (
    <Confirm
      title="Delete this team?"
      action="Delete"
      isDangerous
      of={team}
      onClose={onClose}
      onConfirm={remove}
    >
      <p>This can't be undone. Its usage stays in the reports.</p>
    </Confirm>
  );
}
