/** The tokens that read usage, and those of team leads, with dialogs that create and revoke one. */
import { useState } from 'preact/hooks';
import type { NewUsageToken, Team, UsageToken } from '../../api/types.ts';
import { NONE } from '../../format/numbers.ts';
import { date } from '../../format/times.ts';
import { CopyButton } from '../../parts/controls.tsx';
import { Dialog, FormEnd } from '../../parts/dialog.tsx';
import { Name } from '../../parts/name.tsx';
import { failureWords } from '../../parts/problem.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { useSession } from '../../state/session.ts';

interface UsageTokensProps {
  readonly tokens: readonly UsageToken[];
  readonly nameOf: (keyId: string) => string;
  readonly onRevoke: (token: UsageToken) => void;
}

export function UsageTokens({ tokens, nameOf, onRevoke }: UsageTokensProps) {
  if (tokens.length === 0) return null;
  const mayOf = ({ team, filter }: UsageToken) => {
    if (team !== undefined) return `manage the keys of team ${nameOf(team)}, and read its usage`;
    const parts = Object.entries(filter ?? {}).map(([name, value]) => `${name} ${nameOf(value)}`);
    return parts.length === 0 ? 'read all usage' : `read the usage of ${parts.join(', ')}`;
  };
  const columns: readonly Column<UsageToken>[] = [
    {
      head: 'Name',
      look: 'name',
      isMain: true,
      value: ({ name }) => name,
      cell: ({ id, name }) => <Name title={id} text={name} />,
    },
    {
      head: 'May',
      look: 'limits',
      isMain: true,
      value: mayOf,
      cell: (token) => <Name text={mayOf(token)} />,
    },
    { head: 'Created', value: ({ created_at }) => created_at, cell: ({ created_at }) => date(created_at) },
    {
      head: 'Expires',
      value: ({ expires_at }) => expires_at,
      cell: ({ expires_at }) => (expires_at === null ? 'never' : date(expires_at)),
    },
    {
      head: 'Actions',
      look: 'actions',
      cell: (token) => (
        <button type="button" aria-label={`Revoke ${token.name || NONE}`} onClick={() => onRevoke(token)}>
          Revoke
        </button>
      ),
    },
  ];
  return (
    <>
      <h2 class="foot">Tokens</h2>
      <Table label="Tokens" columns={columns} items={tokens} idOf={({ id }) => id} page={[50, 50]} />
    </>
  );
}

const FILTERS = ['user', 'app', 'session', 'tag', 'provider', 'key'] as const;

interface TokenFormProps {
  /** Of which one a team lead's token manages the keys. */
  readonly teams: readonly Team[];
  readonly onClose: () => void;
  /** Called when the dialog that shows the token is closed. */
  readonly onDone: (made: UsageToken) => void;
}

export function TokenForm({ teams, onClose, onDone }: TokenFormProps) {
  const { api } = useSession();
  const [draft, setDraft] = useState({ name: '', by: '', value: '', expires: '' });
  const [failure, setFailure] = useState<string | null>(null);
  const [made, setMade] = useState<NewUsageToken | null>(null);
  const field = (name: keyof typeof draft) => ({
    value: draft[name],
    onInput: (event: Event & { currentTarget: HTMLInputElement | HTMLSelectElement }) => {
      const { value } = event.currentTarget;
      setDraft((before) => ({ ...before, ...(name === 'by' && { value: '' }), [name]: value }));
    },
  });
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const { name, by, value, expires } = draft;
    const answer = await api.send<NewUsageToken>('POST', '/admin/keys', {
      name: name.trim(),
      ...(by === 'team'
        ? { scope: 'team', team: value }
        : { scope: 'usage', filter: by === '' ? null : { [by]: value.trim() } }),
      expires_at: expires === '' ? null : `${expires}T00:00:00Z`,
    });
    if (answer.kind === 'answer') return setMade(answer.value);
    setFailure(failureWords(answer.problem));
  };
  if (made !== null) {
    const { key, ...listed } = made;
    return (
      <Dialog title="The new token" onClose={() => onDone(listed)}>
        <p>
          Copy it now: it is <strong>not shown again</strong>.
        </p>
        <p class="secret">
          <output class="code">{key}</output>
          <CopyButton text={key} what="the token" />
        </p>
        <p class="hint">
          It signs in to this page, and is the bearer token of GET /v1/usage
          {listed.team !== undefined && ' and of /admin/keys'}.
        </p>
      </Dialog>
    );
  }
  return (
    <Dialog title="Create token" onClose={onClose}>
      <form onSubmit={submit}>
        <p class="hint">
          {draft.by === 'team'
            ? 'It creates, changes, tops up, rotates and revokes keys of the team within the team’s limits, and reads the team’s usage, and nothing else.'
            : 'It reads usage, records, refusals and the list of models, with the ids of keys in place of their names, and nothing else.'}
        </p>
        <label>
          Name
          <input {...field('name')} required maxLength={100} />
        </label>
        <label>
          May
          <select {...field('by')}>
            <option value="">read all usage</option>
            {FILTERS.map((name) => (
              <option key={name} value={name}>
                read the usage of one {name}
              </option>
            ))}
            {teams.length > 0 && <option value="team">manage the keys of one team</option>}
          </select>
        </label>
        {draft.by === 'team' ? (
          <label>
            Team
            <select {...field('value')} required>
              <option value="" />
              {teams.map(({ id, name }) => (
                <option key={id} value={id}>
                  {name || id}
                </option>
              ))}
            </select>
          </label>
        ) : (
          draft.by !== '' && (
            <label>
              Its exact{' '}
              {draft.by === 'tag' ? 'name and value, as team:search' : draft.by === 'key' ? 'id' : 'name'}
              <input {...field('value')} required maxLength={100} spellcheck={false} />
            </label>
          )
        )}
        <label>
          Expires <span class="hint">at the start of the day (UTC); empty for never</span>
          <input type="date" {...field('expires')} />
        </label>
        <FormEnd failure={failure} action="Create token" onClose={onClose} />
      </form>
    </Dialog>
  );
}
