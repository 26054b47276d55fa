/** The form that creates or changes a key. A change sends only the changed fields. */
import { useState } from 'preact/hooks';
import { matchesGlob } from '../../../../shared/glob.ts';
import type { Key, Limits, List, Model, NewKey } from '../../api/types.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { describe } from '../../parts/problem.tsx';
import { useLoad } from '../../state/load.ts';
import { useSession } from '../../state/session.ts';

interface KeyFormProps {
  /** Null: a new key. */
  readonly before: Key | null;
  /** The units for budgets. The key's own unit is offered even if no price uses it. */
  readonly units: readonly string[];
  readonly onClose: () => void;
  readonly onDone: (key: NewKey) => void;
}

/** The texts of the form's fields by their names; empty for none. Limits of each user of the key have names that begin with {@link OF_USERS}. */
type Draft = Readonly<Record<string, string>>;

const OF_USERS = 'per_user.';

const COUNTS = {
  rpm: 'Requests a minute',
  tpm: 'Tokens a minute',
  max_concurrent: 'Requests at once',
  max_output_tokens: 'Max output tokens',
  max_users: 'Users with an allowance of their own',
} as const;
type Count = keyof typeof COUNTS;

const RATES = ['rpm', 'tpm', 'max_concurrent'] as const;
const COUNTS_OF: Readonly<Record<string, readonly Count[]>> = {
  '': [...RATES, 'max_output_tokens'],
  [OF_USERS]: [...RATES, 'max_users'],
};

function draftOf(key: Key | null, units: readonly string[]): Draft {
  return {
    name: key?.name ?? '',
    models: key?.models?.join(', ') ?? '',
    expires: key?.expires_at?.slice(0, 10) ?? '',
    user: key?.user ?? '',
    tags: Object.entries(key?.tags ?? {})
      .map(([name, value]) => `${name}=${value}`)
      .join(', '),
    require_user: key?.require_user ? 'on' : '',
    has_user_limits: key?.per_user ? 'on' : '',
    ...limitsDraft('', key ?? {}, units),
    ...limitsDraft(OF_USERS, key?.per_user ?? {}, units),
  };
}

type OwnLimits = Limits & { readonly max_users?: number };

function limitsDraft(prefix: string, limits: OwnLimits, [firstUnit = 'USD']: readonly string[]): Draft {
  const { per = 'month', mode = 'hard', ...amounts } = limits.budget ?? {};
  const [unit = firstUnit, amount = ''] = Object.entries(amounts)[0] ?? [];
  const counts = COUNTS_OF[prefix]?.map((name) => [name, limits[name] ?? '']) ?? [];
  const fields = Object.entries({ amount, unit, per, mode, ...Object.fromEntries(counts) });
  return Object.fromEntries(fields.map(([name, value]) => [prefix + name, String(value)]));
}

function globsOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((glob) => glob !== '');
}

/** The values of the fields as a request body; null for an empty field. */
function bodyOf(draft: Draft): Record<string, unknown> {
  const { name = '', models = '', expires, user = '', tags = '', require_user, has_user_limits } = draft;
  const globs = globsOf(models);
  const ofUsers = Object.entries(limitsBody(draft, OF_USERS)).filter(([, value]) => value !== null);
  const pairs = tags
    .split(',')
    .filter((tag) => tag.trim() !== '')
    .map((tag) => {
      // A value may contain =.
      const [tagName = '', ...value] = tag.split('=');
      return [tagName.trim(), value.join('=').trim()];
    });
  return {
    name: name.trim(),
    models: globs.length === 0 ? null : globs,
    expires_at: expires === '' ? null : `${expires}T00:00:00Z`,
    user: user.trim() || null,
    tags: pairs.length === 0 ? null : Object.fromEntries(pairs),
    require_user: require_user === '' ? null : true,
    ...limitsBody(draft, ''),
    per_user: ofUsers.length === 0 || !has_user_limits ? null : Object.fromEntries(ofUsers),
  };
}

function limitsBody(draft: Draft, prefix: string): Record<string, unknown> {
  const text = (name: string) => draft[prefix + name] ?? '';
  const number = (name: string) => (text(name).trim() === '' ? null : Number(text(name)));
  const budget = number('amount');
  return {
    budget: budget === null ? null : { [text('unit')]: budget, per: text('per'), mode: text('mode') },
    ...Object.fromEntries(COUNTS_OF[prefix]?.map((name) => [name, number(name)]) ?? []),
  };
}

export function KeyForm({ before, units, onClose, onDone }: KeyFormProps) {
  const { api } = useSession();
  const [draft, setDraft] = useState(() => draftOf(before, units));
  const [failure, setFailure] = useState<{ readonly words: string; readonly param: string | null } | null>(
    null,
  );
  const [isSending, setSending] = useState(false);
  const set = (name: string, value: string) => setDraft((old) => ({ ...old, [name]: value }));
  /** @param param the name of the field in the request, where it differs */
  const field = (name: string, param = name) => ({
    value: draft[name] ?? '',
    'aria-invalid': failure?.param === param,
    onInput: (event: Event & { currentTarget: HTMLInputElement | HTMLSelectElement }) =>
      set(name, event.currentTarget.value),
  });

  const models = useLoad<List<Model>>((signal) => api.get('/v1/models', {}, signal), [api]);
  const known = models.value?.data.map(({ id }) => id) ?? [];
  const globs = globsOf(draft.models ?? '');
  const choices = [...new Set([...known.map((id) => `${id.split('/')[0]}/*`), ...known])].filter(
    (choice) => !globs.includes(choice),
  );
  // A provider whose list can't be loaded right now has no known models.
  const unknown =
    known.length === 0 ? [] : globs.filter((glob) => !known.some((id) => matchesGlob(glob, id)));
  const add = (select: HTMLSelectElement) => {
    const { value } = select;
    select.value = '';
    if (value !== '') set('models', [...globs, value].join(', '));
  };

  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setSending(true);
    const now = bodyOf(draft);
    const was = before === null ? {} : bodyOf(draftOf(before, units));
    const isChanged = ([name, value]: [string, unknown]) =>
      before === null ? value !== null : JSON.stringify(value) !== JSON.stringify(was[name]);
    const body = Object.fromEntries(Object.entries(now).filter(isChanged));
    const answer =
      before === null
        ? await api.send<NewKey>('POST', '/admin/keys', body)
        : await api.send<NewKey>('PATCH', `/admin/keys/${before.id}`, body);
    setSending(false);
    if (answer.kind === 'answer') return onDone(answer.value);
    const { problem } = answer;
    const isOfField = problem.kind === 'refused' && problem.status === 400;
    setFailure({
      words: isOfField ? problem.message : describe(problem).title,
      param: isOfField ? problem.param : null,
    });
  };

  const check = (name: string, label: string) => (
    <label class="inline check">
      <input
        type="checkbox"
        checked={Boolean(draft[name])}
        onChange={({ currentTarget }) => set(name, currentTarget.checked ? 'on' : '')}
      />
      {label}
    </label>
  );
  /** @param prefix of the names of the fields */
  const limits = (prefix: string) => (
    <>
      <fieldset class="counts">
        <legend>
          {prefix === '' ? 'Budget' : 'Budget of each user'} <span class="hint">empty for none</span>
        </legend>
        <label>
          Amount
          <input
            type="number"
            min="0"
            step="any"
            placeholder="none"
            {...field(`${prefix}amount`, prefix === '' ? 'budget' : 'per_user')}
          />
        </label>
        <label>
          Currency, or tokens
          <select {...field(`${prefix}unit`)}>
            {[...new Set([draft[`${prefix}unit`] ?? '', ...units])].map((unit) => (
              <option key={unit}>{unit}</option>
            ))}
          </select>
        </label>
        <label>
          Period
          <select {...field(`${prefix}per`)}>
            <option value="day">Day</option>
            <option value="month">Month</option>
            <option value="total">Total</option>
          </select>
        </label>
        <label>
          When it is used up
          <select {...field(`${prefix}mode`)}>
            <option value="hard">Block requests</option>
            <option value="warn">Warn only</option>
          </select>
        </label>
      </fieldset>
      <fieldset class="counts">
        <legend>
          {prefix === '' ? 'Limits' : 'Limits of each user'} <span class="hint">empty for none</span>
        </legend>
        {COUNTS_OF[prefix]?.map((name) => (
          <label key={name}>
            {COUNTS[name]}
            <input type="number" min="1" step="1" {...field(prefix + name)} />
          </label>
        ))}
      </fieldset>
    </>
  );

  return (
    <Dialog title={before === null ? 'Create key' : 'Change key'} onClose={onClose}>
      <form onSubmit={submit}>
        <label>
          Name
          <input {...field('name')} required maxLength={100} />
        </label>
        <label>
          Models <span class="hint">globs, such as provider/*; empty for all</span>
          <input {...field('models')} spellcheck={false} />
        </label>
        {known.length > 0 && (
          <label>
            Add a model
            <select value="" onChange={({ currentTarget }) => add(currentTarget)}>
              <option value="">choose …</option>
              {choices.map((choice) => (
                <option key={choice}>{choice}</option>
              ))}
            </select>
          </label>
        )}
        {unknown.length > 0 && (
          <p class="problem" role="status">
            No known model matches <bdi>{unknown.join(', ')}</bdi>. Requests with this key may all be refused.
          </p>
        )}
        <label>
          Expires <span class="hint">at the start of the day (UTC); empty for never</span>
          <input type="date" {...field('expires', 'expires_at')} />
        </label>
        {limits('')}
        {check('has_user_limits', 'Limits for each user of the key')}
        {draft.has_user_limits && limits(OF_USERS)}
        <details open={Boolean(before?.user || before?.tags || before?.require_user)}>
          <summary>User and tags of all its requests</summary>
          <div class="counts">
            <label>
              Set user
              <input {...field('user')} maxLength={100} placeholder="as requests name it" />
            </label>
            <label>
              Set tags
              <input {...field('tags')} placeholder="team=search, env=prod" />
            </label>
          </div>
          {check('require_user', 'Refuse requests without a user')}
        </details>
        {failure !== null && (
          <p class="problem" role="alert">
            {failure.words}
          </p>
        )}
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={isSending}>
            {before === null ? 'Create key' : 'Save'}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
