/** The form that creates or changes a key. A change sends only the changed fields. */
import { useState } from 'preact/hooks';
import { matchesGlob } from '../../../../shared/glob.ts';
import type { Key, List, Model, NewKey } from '../../api/types.ts';
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

/** The texts of the form's fields; empty for none. */
interface Draft {
  readonly name: string;
  readonly models: string;
  readonly expires: string;
  readonly amount: string;
  readonly unit: string;
  readonly per: string;
  readonly mode: string;
  readonly rpm: string;
  readonly tpm: string;
  readonly max_concurrent: string;
  readonly max_output_tokens: string;
}

const COUNTS = [
  ['rpm', 'Requests a minute'],
  ['tpm', 'Tokens a minute'],
  ['max_concurrent', 'Requests at once'],
  ['max_output_tokens', 'Max output tokens'],
] as const;

function draftOf(key: Key | null, [firstUnit = 'USD']: readonly string[]): Draft {
  const { per = 'month', mode = 'hard', ...amounts } = key?.budget ?? {};
  const [unit = firstUnit, amount = ''] = Object.entries(amounts)[0] ?? [];
  return {
    name: key?.name ?? '',
    models: key?.models?.join(', ') ?? '',
    expires: key?.expires_at?.slice(0, 10) ?? '',
    amount: String(amount),
    unit,
    per,
    mode,
    rpm: String(key?.rpm ?? ''),
    tpm: String(key?.tpm ?? ''),
    max_concurrent: String(key?.max_concurrent ?? ''),
    max_output_tokens: String(key?.max_output_tokens ?? ''),
  };
}

function globsOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((glob) => glob !== '');
}

/** The values of the fields as a request body; null for an empty field. */
function bodyOf(draft: Draft): Record<string, unknown> {
  const globs = globsOf(draft.models);
  const number = (text: string) => (text.trim() === '' ? null : Number(text));
  const budget = number(draft.amount);
  return {
    name: draft.name.trim(),
    models: globs.length === 0 ? null : globs,
    expires_at: draft.expires === '' ? null : `${draft.expires}T00:00:00Z`,
    budget: budget === null ? null : { [draft.unit]: budget, per: draft.per, mode: draft.mode },
    ...Object.fromEntries(COUNTS.map(([name]) => [name, number(draft[name])])),
  };
}

export function KeyForm({ before, units, onClose, onDone }: KeyFormProps) {
  const { api } = useSession();
  const [draft, setDraft] = useState(() => draftOf(before, units));
  const [failure, setFailure] = useState<{ readonly words: string; readonly param: string | null } | null>(
    null,
  );
  const [isSending, setSending] = useState(false);
  /** @param param the name of the field in the request, where it differs */
  const field = (name: keyof Draft, param: string = name) => ({
    value: draft[name],
    'aria-invalid': failure?.param === param,
    onInput: (event: Event & { currentTarget: HTMLInputElement | HTMLSelectElement }) =>
      setDraft((old) => ({ ...old, [name]: event.currentTarget.value })),
  });

  const models = useLoad<List<Model>>((signal) => api.get('/v1/models', {}, signal), [api]);
  const known = models.value?.data.map(({ id }) => id) ?? [];
  const globs = globsOf(draft.models);
  const choices = [...new Set([...known.map((id) => `${id.split('/')[0]}/*`), ...known])].filter(
    (choice) => !globs.includes(choice),
  );
  // A provider whose list can't be loaded right now has no known models.
  const unknown =
    known.length === 0 ? [] : globs.filter((glob) => !known.some((id) => matchesGlob(glob, id)));
  const add = (select: HTMLSelectElement) => {
    const { value } = select;
    select.value = '';
    if (value !== '') setDraft((old) => ({ ...old, models: [...globsOf(old.models), value].join(', ') }));
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
        <fieldset class="counts">
          <legend>
            Budget <span class="hint">empty for none</span>
          </legend>
          <label>
            Amount
            <input type="number" min="0" step="any" placeholder="none" {...field('amount', 'budget')} />
          </label>
          <label>
            Currency, or tokens
            <select {...field('unit')}>
              {[...new Set([draft.unit, ...units])].map((unit) => (
                <option key={unit}>{unit}</option>
              ))}
            </select>
          </label>
          <label>
            Period
            <select {...field('per')}>
              <option value="day">Day</option>
              <option value="month">Month</option>
              <option value="total">Total</option>
            </select>
          </label>
          <label>
            When it is used up
            <select {...field('mode')}>
              <option value="hard">Block requests</option>
              <option value="warn">Warn only</option>
            </select>
          </label>
        </fieldset>
        <fieldset class="counts">
          <legend>
            Limits <span class="hint">empty for none</span>
          </legend>
          {COUNTS.map(([name, label]) => (
            <label key={name}>
              {label}
              <input type="number" min="1" step="1" {...field(name)} />
            </label>
          ))}
        </fieldset>
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
