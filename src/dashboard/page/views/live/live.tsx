/** The live view: sends one prompt to one or two models, and shows both streams with every frame as it arrives. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { curlOf } from '../../api/fetch-api.ts';
import type { List, Model } from '../../api/types.ts';
import { CopyButton } from '../../parts/controls.tsx';
import { describe, ProblemBox } from '../../parts/problem.tsx';
import { useLoad } from '../../state/load.ts';
import { goTo, type Params } from '../../state/route.ts';
import { useSession } from '../../state/session.ts';
import { liveApi } from './live-key.ts';
import { isProtocol, PROTOCOLS, type ProtocolName } from './protocols.ts';
import { Run } from './run.ts';
import { StreamView } from './stream-view.tsx';

const DEFAULT_PROMPT = 'Explain in three sentences what a weir does.';

export function Live({ params }: { params: Params }) {
  const session = useSession();
  const models = useLoad<List<Model>>((signal) => session.api.get('/v1/models', {}, signal), [session.api]);
  const ids = models.value?.data.map(({ id }) => id) ?? [];
  const [prompt, setPrompt] = useState(DEFAULT_PROMPT);
  const [more, setMore] = useState('');
  const [protocol, setProtocol] = useState<ProtocolName>('chat');
  const [failure, setFailure] = useState<string | null>(null);
  const { runs, start, stop } = useRuns();
  const isRunning = runs.some((run) => run.isRunning);
  /** The texts of the fields. The URL gets them on change events. */
  const [chosen, setChosen] = useState<Chosen>(NONE_CHOSEN);
  const isSending = useRef(false);
  useEffect(() => setChosen({ a: params.a ?? '', b: params.b ?? '' }), [params.a, params.b]);

  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    // A second Enter while the key is being created would send two requests.
    if (isRunning || isSending.current) return;
    setFailure(null);
    const fields = readFields(more);
    if (fields === null)
      return setFailure('Further parameters must be a JSON object, such as {"max_tokens": 100}.');
    const chosenModels = [chosen.a.trim(), chosen.b.trim()].filter((id) => id !== '');
    isSending.current = true;
    const made = await liveApi(session);
    isSending.current = false;
    if (made.kind === 'passthrough')
      return setFailure(
        "This deployment uses its callers' provider keys (AUTH=passthrough): sign in with a provider key to use Live.",
      );
    if (made.kind === 'problem') return setFailure(describe(made.problem).title);
    start(chosenModels, protocol, made.api, prompt, fields);
  };

  const copied = PROTOCOLS[protocol].request(chosen.a.trim(), prompt, readFields(more) ?? {});
  const spanMs = Math.max(...runs.map((run) => run.endedAt ?? run.lastAt), 1);
  return (
    <>
      {models.problem !== null && <ProblemBox problem={models.problem} onRetry={models.reload} />}
      <form
        class="live"
        onSubmit={send}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
        }}
      >
        <div class="models">
          {(['a', 'b'] as const).map((name, i) => (
            <label key={name}>
              {i === 0 ? 'Model' : 'Compare with (optional)'}
              <input
                list="models"
                required={i === 0}
                spellcheck={false}
                placeholder={models.isLoading ? 'loading the models …' : 'provider/model'}
                value={chosen[name]}
                onInput={(event) => setChosen({ ...chosen, [name]: event.currentTarget.value })}
                onChange={() => goTo('live', params, { a: chosen.a.trim(), b: chosen.b.trim() })}
              />
            </label>
          ))}
          <label>
            Protocol of the client
            <select
              value={protocol}
              onChange={({ currentTarget: { value } }) => isProtocol(value) && setProtocol(value)}
            >
              {Object.entries(PROTOCOLS).map(([name, { title }]) => (
                <option key={name} value={name}>
                  {title}
                </option>
              ))}
            </select>
          </label>
          <datalist id="models">
            {ids.map((id) => (
              <option key={id} value={id} />
            ))}
          </datalist>
        </div>
        <label>
          Prompt
          <textarea
            rows={3}
            required
            value={prompt}
            onInput={(event) => setPrompt(event.currentTarget.value)}
          />
        </label>
        <details>
          <summary>Further parameters</summary>
          <label>
            A JSON object: max_tokens, tools, temperature, …
            <textarea
              class="code"
              rows={3}
              spellcheck={false}
              value={more}
              onInput={(event) => setMore(event.currentTarget.value)}
            />
          </label>
        </details>
        <p class="send">
          <button type="submit" class="primary" disabled={isRunning}>
            Send
          </button>
          <button type="button" disabled={!isRunning} onClick={stop}>
            Stop
          </button>
          <CopyButton label="Copy as curl" text={curlOf(null, copied.body, copied.path)} />
          {session.isAdmin && <span class="hint">Uses a temporary key that expires in an hour.</span>}
        </p>
        {failure !== null && (
          <p class="problem" role="alert">
            {failure}
          </p>
        )}
      </form>
      {runs.length === 0 ? (
        <div class="empty">
          <strong>No request yet</strong>
          <p>
            Pick a model, or two to compare, and watch every frame as it arrives. Requests are metered like
            any other.
          </p>
        </div>
      ) : (
        <div class="streams">
          {runs.map((run, i) => (
            <StreamView key={i} run={run} spanMs={spanMs} />
          ))}
        </div>
      )}
    </>
  );
}

type Chosen = Readonly<Record<'a' | 'b', string>>;
const NONE_CHOSEN: Chosen = { a: '', b: '' };

/** The shortest time between two renders, however fast the streams are. */
const DRAW_MS = 60;

/** The running streams. They are stopped when the view is left. */
function useRuns() {
  const [runs, setRuns] = useState<readonly Run[]>([]);
  const [, draw] = useState(0);
  const latest = useRef<readonly Run[]>([]);
  const pending = useRef(0);
  const onChange = () => {
    pending.current ||= setTimeout(() => {
      pending.current = 0;
      draw((before) => before + 1);
    }, DRAW_MS);
  };
  const stop = () => {
    for (const run of latest.current) run.stop();
  };
  useEffect(
    () => () => {
      clearTimeout(pending.current);
      stop();
    },
    [],
  );
  const start = (models: readonly string[], protocol: ProtocolName, ...sent: Parameters<Run['start']>) => {
    latest.current = models.map((model) => new Run(model, PROTOCOLS[protocol], onChange));
    setRuns(latest.current);
    for (const run of latest.current) void run.start(...sent);
  };
  return { runs, start, stop };
}

/** @returns null where the text is not a JSON object */
function readFields(text: string): Readonly<Record<string, unknown>> | null {
  if (text.trim() === '') return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}
