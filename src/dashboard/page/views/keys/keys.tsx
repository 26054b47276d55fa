/** The view of all keys, their limits and budgets, with dialogs that create, change and revoke a key. */
import { useState } from 'preact/hooks';
import type { Key, Keys as KeyList, NewKey } from '../../api/types.ts';
import { count } from '../../format/numbers.ts';
import { date } from '../../format/times.ts';
import { CopyButton } from '../../parts/controls.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { describe, ProblemBox } from '../../parts/problem.tsx';
import { type Column, ShowMore, Table } from '../../parts/table.tsx';
import { useLoad } from '../../state/load.ts';
import { linkTo } from '../../state/route.ts';
import { useSession } from '../../state/session.ts';
import { Budget, limitsInWords } from './budget.tsx';
import { KeyForm } from './key-form.tsx';

type Open =
  | { readonly kind: 'new' }
  | { readonly kind: 'made' | 'changed'; readonly key: NewKey }
  | { readonly kind: 'change'; readonly key: Key }
  | { readonly kind: 'revoke'; readonly key: Key };

const PAGE = 50;

export function Keys() {
  const { api } = useSession();
  /** Incremented to load the keys and their budgets again. */
  const [reloads, setReloads] = useState(0);
  const { value, problem, isLoading, reload } = useLoad<KeyList>(
    (signal) => api.get('/admin/keys', {}, signal),
    [api, reloads],
  );
  const [open, setOpen] = useState<Open | null>(null);
  const [shown, setShown] = useState(PAGE);
  /** Changes made here: KV is eventually consistent, so the next list may not have them yet. */
  const [done, setDone] = useState<ReadonlyMap<string, Key | null>>(new Map());
  const keys = merge(value?.data ?? [], done);
  const units = value?.budget_units ?? [];
  const note = (id: string, key: Key | null) => setDone((before) => new Map(before).set(id, key));

  return (
    <>
      <div class="bar">
        <button type="button" class="primary" onClick={() => setOpen({ kind: 'new' })}>
          New key
        </button>
        {keys.length > 0 && (
          <span class="hint">
            {count(keys.length)} keys{' '}
            <button type="button" class="link" onClick={() => setReloads(reloads + 1)}>
              Load again
            </button>
          </span>
        )}
      </div>
      {problem !== null && <ProblemBox problem={problem} onRetry={reload} />}
      {isLoading && value === null && <p class="hint">Loading …</p>}
      {keys.length === 0 && !isLoading && problem === null && (
        <div class="empty">
          <strong>There are no keys yet</strong>
          <p>Clients call this deployment with a key. Each can have its own models, limits and budget.</p>
        </div>
      )}
      {keys.length > 0 && (
        <Table
          key={reloads}
          label="Keys"
          columns={columnsOf(setOpen)}
          items={keys.slice(0, shown)}
          idOf={({ id }) => id}
          lookOf={(key) => (isExpired(key) ? 'over' : '')}
        />
      )}
      <ShowMore left={keys.length - shown} step={PAGE} onMore={() => setShown(shown + PAGE)} />
      {open?.kind === 'new' && (
        <KeyForm
          before={null}
          units={units}
          onClose={() => setOpen(null)}
          onDone={(made) => {
            const { key: _, warnings: __, ...listed } = made;
            note(made.id, listed);
            setOpen({ kind: 'made', key: made });
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
        <KeyForm
          before={open.key}
          units={units}
          onClose={() => setOpen(null)}
          onDone={(changed) => {
            const { warnings, ...listed } = changed;
            note(changed.id, listed);
            setOpen(warnings === undefined ? null : { kind: 'changed', key: changed });
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

/** The listed keys with the changes made here (null: revoked), latest first. */
function merge(listed: readonly Key[], done: ReadonlyMap<string, Key | null>): Key[] {
  const byId = new Map(listed.map((key) => [key.id, key]));
  for (const [id, key] of done) {
    if (key === null) byId.delete(id);
    else byId.set(id, key);
  }
  return [...byId.values()].sort((a, b) => (a.created_at > b.created_at ? -1 : 1));
}

function isExpired({ expires_at }: Key): boolean {
  return expires_at !== null && Date.parse(expires_at) <= Date.now();
}

function columnsOf(onOpen: (open: Open) => void): readonly Column<Key>[] {
  const button = (label: string, kind: 'change' | 'revoke', key: Key) => (
    <button type="button" aria-label={`${label} ${key.name || key.id}`} onClick={() => onOpen({ kind, key })}>
      {label}
    </button>
  );
  return [
    {
      head: 'Name',
      look: 'name',
      cell: ({ id, name }) => (
        <a href={linkTo('overview', { key: id })}>
          <bdi title={id}>{name || id}</bdi>
        </a>
      ),
    },
    { head: 'Budget', cell: (key) => <Budget of={key} /> },
    { head: 'Limits', look: 'hint limits', cell: limitsInWords },
    {
      head: 'Models',
      look: 'name',
      cell: ({ models }) => <bdi title={models?.join(', ')}>{models?.join(', ') ?? 'all'}</bdi>,
    },
    { head: 'Made', cell: ({ created_at }) => date(created_at) },
    {
      head: 'Expires',
      cell: (key) =>
        key.expires_at === null ? 'never' : (isExpired(key) ? 'expired ' : '') + date(key.expires_at),
    },
    {
      head: <span class="sr">Actions</span>,
      look: 'actions',
      cell: (key) => (
        <>
          {button('Change', 'change', key)}
          {button('Revoke', 'revoke', key)}
        </>
      ),
    },
  ];
}

function CreatedKey({ made, onClose }: { made: NewKey; onClose: () => void }) {
  return (
    <Dialog title="The new key" onClose={onClose}>
      <p>
        Copy it now: it is not kept, and <strong>not shown again</strong>.
      </p>
      <p class="secret">
        <output class="code">{made.key}</output>
        <CopyButton text={made.key} />
      </p>
      <Warnings of={made} />
      <p class="hint">It may take up to a minute until every location knows it.</p>
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

function Revoke({ of: key, onClose, onDone }: { of: Key; onClose: () => void; onDone: () => void }) {
  const { api } = useSession();
  const [failure, setFailure] = useState<string | null>(null);
  const revoke = async () => {
    const answer = await api.send('DELETE', `/admin/keys/${key.id}`);
    if (answer.kind === 'answer' || (answer.problem.kind === 'refused' && answer.problem.status === 404))
      onDone();
    else setFailure(describe(answer.problem).title);
  };
  return (
    <Dialog title="Revoke this key?" onClose={onClose}>
      <p>
        <bdi>
          <strong>{key.name || key.id}</strong>
        </bdi>
      </p>
      <p>
        Requests with it are refused within a minute. This can't be undone; what it used stays in the reports.
      </p>
      {failure !== null && (
        <p class="problem" role="alert">
          {failure}
        </p>
      )}
      <footer>
        <button type="button" onClick={onClose}>
          Keep it
        </button>
        <button type="button" class="danger" onClick={() => void revoke()}>
          Revoke
        </button>
      </footer>
    </Dialog>
  );
}
