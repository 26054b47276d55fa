/** The form that creates or changes a key, or a team. A change sends only the changed fields. */
import { useState } from 'preact/hooks';
import { matchesGlob } from '../../../../shared/glob.ts';
import type { Problem } from '../../api/problem.ts';
import type { Key, List, Model, Team } from '../../api/types.ts';
import { Dialog, FormEnd } from '../../parts/dialog.tsx';
import { failureWords } from '../../parts/problem.tsx';
import { useLoad } from '../../state/load.ts';
import { useSession } from '../../state/session.ts';
import {
  COUNTS,
  COUNTS_OF,
  changesOf,
  type Draft,
  draftOf,
  globsOf,
  OF_KEYS,
  OF_USERS,
} from './key-draft.ts';

interface KeyFormProps<Made> {
  /** Null: a new one. */
  readonly before: Key | Team | null;
  /** Where it is created. */
  readonly path: '/admin/keys' | '/v1/admin/teams';
  /** The units for budgets. The key's own unit is offered even if no price uses it. */
  readonly units: readonly string[];
  /** Those that a key may be in. */
  readonly teams?: readonly Team[];
  readonly onClose: () => void;
  readonly onDone: (made: Made) => void;
}

export function KeyForm<Made>({ before, path, units, teams = [], onClose, onDone }: KeyFormProps<Made>) {
  const isKey = path === '/admin/keys';
  const what = isKey ? 'key' : 'team';
  const { api } = useSession();
  const original = before === null ? null : draftOf(before, units);
  const [draft, setDraft] = useState(() => original ?? draftOf(null, units));
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isSending, setSending] = useState(false);
  const fields: Fields = {
    draft,
    invalid: problem?.kind === 'refused' && problem.status === 400 ? problem.param : null,
    set: (name, value) => setDraft((old) => ({ ...old, [name]: value })),
  };

  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setSending(true);
    const body = changesOf(draft, original);
    const answer =
      before === null
        ? await api.send<Made>('POST', path, body)
        : await api.send<Made>('PATCH', `${path}/${before.id}`, body);
    setSending(false);
    if (answer.kind === 'answer') onDone(answer.value);
    else setProblem(answer.problem);
  };

  return (
    <Dialog title={`${before === null ? 'Create' : 'Change'} ${what}`} onClose={onClose}>
      <form onSubmit={submit}>
        <label>
          Name
          <input {...inputOf(fields, 'name')} required maxLength={100} />
        </label>
        <ModelsField fields={fields} />
        {isKey && (
          <label>
            Expires <span class="hint">at the start of the day (UTC); empty for never</span>
            <input type="date" {...inputOf(fields, 'expires', 'expires_at')} />
          </label>
        )}
        {isKey && teams.length > 0 && (
          <label>
            Team
            <select {...inputOf(fields, 'team')}>
              <option value="">none</option>
              {teams.map(({ id, name }) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        )}
        {!isKey && <PeopleFields fields={fields} />}
        <BudgetFields fields={fields} prefix="" units={units} />
        <CountFields fields={fields} prefix="" isOfTeam={!isKey} />
        {!isKey && (
          <Check
            fields={fields}
            name="has_key_limits"
            label="Limits for each key of the team that sets none"
          />
        )}
        {draft.has_key_limits && (
          <>
            <BudgetFields fields={fields} prefix={OF_KEYS} units={units} />
            <CountFields fields={fields} prefix={OF_KEYS} />
          </>
        )}
        <Check fields={fields} name="has_user_limits" label={`Limits for each user of the ${what}`} />
        {draft.has_user_limits && (
          <>
            <BudgetFields fields={fields} prefix={OF_USERS} units={units} />
            <CountFields fields={fields} prefix={OF_USERS} />
          </>
        )}
        {isKey && (
          <FactFields fields={fields} isOpen={Boolean(draft.user || draft.tags || draft.require_user)} />
        )}
        <FormEnd
          failure={problem && failureWords(problem)}
          action={before === null ? `Create ${what}` : 'Save'}
          isSending={isSending}
          onClose={onClose}
        />
      </form>
    </Dialog>
  );
}

/** The state of the form, for the parts of it. */
interface Fields {
  readonly draft: Draft;
  /** The field of the request that the API refused; null: none. */
  readonly invalid: string | null;
  readonly set: (name: string, value: string) => void;
}

/** The properties of an input or a select. `param` is the name of its field in the request, where it differs. */
function inputOf({ draft, invalid, set }: Fields, name: string, param = name) {
  return {
    value: draft[name] ?? '',
    'aria-invalid': invalid === param,
    onInput: (event: Event & { currentTarget: HTMLInputElement | HTMLSelectElement }) =>
      set(name, event.currentTarget.value),
  };
}

interface CheckProps {
  readonly fields: Fields;
  readonly name: string;
  readonly label: string;
}

function Check({ fields: { draft, set }, name, label }: CheckProps) {
  return (
    <label class="inline check">
      <input
        type="checkbox"
        checked={Boolean(draft[name])}
        onChange={({ currentTarget }) => set(name, currentTarget.checked ? 'on' : '')}
      />
      {label}
    </label>
  );
}

/** The globs of the models, with a list of what exists and a warning about globs that match nothing of it. */
function ModelsField({ fields }: { fields: Fields }) {
  const { api } = useSession();
  const models = useLoad<List<Model>>((signal) => api.get('/v1/models', {}, signal), [api]);
  const modelIds = models.value?.data.map(({ id }) => id) ?? [];
  const globs = globsOf(fields.draft.models ?? '');
  const choices = [...new Set([...modelIds.map((id) => `${id.split('/')[0]}/*`), ...modelIds])].filter(
    (choice) => !globs.includes(choice),
  );
  // A provider whose list can't be loaded right now has no known models.
  const unknown =
    modelIds.length === 0 ? [] : globs.filter((glob) => !modelIds.some((id) => matchesGlob(glob, id)));
  const add = (select: HTMLSelectElement) => {
    const { value } = select;
    select.value = '';
    if (value !== '') fields.set('models', [...globs, value].join(', '));
  };
  return (
    <>
      <label>
        Models <span class="hint">globs: provider/*; empty for all</span>
        <input {...inputOf(fields, 'models')} spellcheck={false} />
      </label>
      {modelIds.length > 0 && (
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
    </>
  );
}

interface LimitFieldsProps {
  readonly fields: Fields;
  /** Of the names of the fields: empty for the key or the team itself. */
  readonly prefix: string;
}

/** Whose limits they are, behind the name of a group of fields. */
const WHOSE: Readonly<Record<string, string>> = {
  '': '',
  [OF_KEYS]: ' of each key',
  [OF_USERS]: ' of each user',
};

/** Who falls under a team without a key. */
function PeopleFields({ fields }: { fields: Fields }) {
  const { people, groups, default: isDefault } = fields.draft;
  return (
    <details open={Boolean(people || groups || isDefault)}>
      <summary>People without a key, who sign in by Cloudflare Access</summary>
      <div class="counts">
        <label>
          People
          <input {...inputOf(fields, 'people')} placeholder="*@example.com" spellcheck={false} />
        </label>
        <label>
          Groups
          <input {...inputOf(fields, 'groups')} placeholder="eng-search, …" spellcheck={false} />
        </label>
      </div>
      <Check fields={fields} name="default" label="All others whom no team lists" />
    </details>
  );
}

function BudgetFields({ fields, prefix, units }: LimitFieldsProps & { units: readonly string[] }) {
  const unit = `${prefix}unit`;
  return (
    <fieldset class="counts">
      <legend>
        Budget{WHOSE[prefix]} <span class="hint">empty for none</span>
      </legend>
      <label>
        Amount
        <input
          type="number"
          min="0"
          step="any"
          placeholder="none"
          {...inputOf(fields, `${prefix}amount`, prefix === '' ? 'budget' : prefix.slice(0, -1))}
        />
      </label>
      <label>
        Currency, or tokens
        <select {...inputOf(fields, unit)}>
          {[...new Set([fields.draft[unit] ?? '', ...units])].map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
      <label>
        Period
        <select {...inputOf(fields, `${prefix}per`)}>
          <option value="day">Day</option>
          <option value="week">Week</option>
          <option value="month">Month</option>
          <option value="total">Total</option>
        </select>
      </label>
      <label>
        When it is used up
        <select {...inputOf(fields, `${prefix}mode`)}>
          <option value="hard">Block requests</option>
          <option value="running">Block requests, end streams</option>
          <option value="warn">Warn only</option>
        </select>
      </label>
      {prefix !== OF_USERS && (
        <label>
          Further budgets
          <input {...inputOf(fields, `${prefix}more`)} placeholder="300 USD month, …" spellcheck={false} />
        </label>
      )}
    </fieldset>
  );
}

function CountFields({ fields, prefix, isOfTeam = false }: LimitFieldsProps & { isOfTeam?: boolean }) {
  return (
    <fieldset class="counts">
      <legend>
        Limits{WHOSE[prefix]} <span class="hint">empty for none</span>
      </legend>
      {COUNTS_OF[prefix]
        ?.filter((name) => !(isOfTeam && name === 'max_output_tokens'))
        .map((name) => (
          <label key={name}>
            {COUNTS[name]}
            <input type="number" min="1" step="1" {...inputOf(fields, prefix + name)} />
          </label>
        ))}
    </fieldset>
  );
}

/** What the key fixes for all of its requests. */
function FactFields({ fields, isOpen }: { fields: Fields; isOpen: boolean }) {
  return (
    <details open={isOpen}>
      <summary>User and tags of all its requests</summary>
      <div class="counts">
        <label>
          Set user
          <input {...inputOf(fields, 'user')} maxLength={100} placeholder="as requests name it" />
        </label>
        <label>
          Set tags
          <input {...inputOf(fields, 'tags')} placeholder="team=search, env=prod" />
        </label>
      </div>
      <Check fields={fields} name="require_user" label="Refuse requests without a user" />
    </details>
  );
}
