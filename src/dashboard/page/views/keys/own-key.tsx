/** The view of the signed-in key: what is left of its limits, how each client connects, its models, its last requests and failures. */
import { useState } from 'preact/hooks';
import { BASE_URL, curlOf } from '../../api/fetch-api.ts';
import type { KeyStatus, List, Model } from '../../api/types.ts';
import { count } from '../../format/numbers.ts';
import { date } from '../../format/times.ts';
import { CopyButton } from '../../parts/controls.tsx';
import { DocsLink } from '../../parts/docs.tsx';
import { Name } from '../../parts/name.tsx';
import { Trouble } from '../../parts/problem.tsx';
import { Facts } from '../../parts/table.tsx';
import { useLoad } from '../../state/load.ts';
import { linkTo } from '../../state/route.ts';
import { useSession } from '../../state/session.ts';
import { limitFacts } from './budget.tsx';
import { Spending } from './key-page.tsx';
import { Latest } from './latest.tsx';

export function OwnKey() {
  const { api } = useSession();
  const loaded = useLoad<KeyStatus>((signal) => api.get('/v1/key', {}, signal), [api]);
  const models = useLoad<List<Model>>((signal) => api.get('/v1/models', {}, signal), [api]);
  const { value, isLoading } = loaded;
  const [reloads, setReloads] = useState(0);
  const reload = () => {
    loaded.reload();
    setReloads(reloads + 1);
  };
  if (value === null) return isLoading ? <p class="hint">Loading …</p> : <Trouble of={loaded} />;
  const { limits, per_user } = value;
  const ids = models.value?.data.map(({ id }) => id) ?? null;
  return (
    <>
      <Trouble of={loaded} />
      <div class="bar">
        <button type="button" onClick={reload}>
          Refresh
        </button>
      </div>
      <h2>What is left</h2>
      <div class="beside">
        <Facts
          facts={[
            ['Name', <bdi>{value.name || value.user || value.id}</bdi>],
            value.team_name !== undefined && ['Team', <bdi>{value.team_name}</bdi>],
            ['Models', <bdi>{value.models?.join(', ') ?? 'all'}</bdi>],
            ['Expires', value.expires_at === null ? 'never' : date(value.expires_at)],
            ...limitFacts(value, limits?.budget),
            limits?.max_output_tokens && ['Max output tokens', count(limits.max_output_tokens)],
            limits === null && ['Limits', 'none'],
          ]}
        />
        <Spending of={{}} reloads={reloads} />
      </div>
      {per_user && (
        <>
          <h2>
            Limits of <bdi>{per_user.user ?? 'requests without a user'}</bdi>
          </h2>
          <Facts facts={limitFacts(per_user, limits?.per_user?.budget)} />
        </>
      )}
      <Connect model={ids?.[0] ?? 'provider/model'} />
      <h2 class="foot">Models that the key may use</h2>
      {ids === null && models.isLoading && <p class="hint">Loading …</p>}
      {models.problem !== null && <Trouble of={models} />}
      {ids !== null && <Models ids={ids} />}
      <Latest filters={{}} reloads={reloads} />
    </>
  );
}

const OPENAI = `${BASE_URL}/v1`;

/** The lines that connect each client. None has the secret, which others may see on the screen. */
function linesOf(model: string): readonly (readonly [client: string, lines: string])[] {
  const anthropic = `export ANTHROPIC_BASE_URL=${BASE_URL}\nexport ANTHROPIC_AUTH_TOKEN=$WEIR_KEY`;
  const gemini = `export GOOGLE_GEMINI_BASE_URL=${BASE_URL}\nexport GEMINI_API_KEY=$WEIR_KEY`;
  return [
    ['OpenAI’s SDKs', `export OPENAI_BASE_URL=${OPENAI}\nexport OPENAI_API_KEY=$WEIR_KEY`],
    ['Anthropic’s SDKs', anthropic],
    ['Google’s SDKs', gemini],
    ['Claude Code', `${anthropic}\nexport ANTHROPIC_MODEL=${model}\nclaude`],
    [
      'Codex (~/.codex/config.toml)',
      `model = "${model}"\nmodel_provider = "weir"\n\n[model_providers.weir]\nname = "Weir"\nbase_url = "${OPENAI}"\nenv_key = "WEIR_KEY"\nwire_api = "responses"`,
    ],
    ['Gemini CLI', `${gemini}\ngemini -m ${model}`],
    ['curl', curlOf(null, { model, stream: true, messages: [{ role: 'user', content: 'Say hello.' }] })],
  ];
}

function Connect({ model }: { model: string }) {
  return (
    <>
      <h2 class="foot">Connect a client</h2>
      <p class="hint">WEIR_KEY is the variable that holds your key.</p>
      <Facts
        facts={[
          ['OpenAI’s clients', <span class="code">{OPENAI}</span>],
          ['Anthropic’s clients', <span class="code">{BASE_URL}</span>],
          ['Gemini’s clients', <span class="code">{BASE_URL}</span>],
        ]}
      />
      {linesOf(model).map(([client, lines], i) => (
        <details key={client} open={i === 0}>
          <summary>{client}</summary>
          <section class="scroll" aria-label={client} tabIndex={0}>
            <pre>{lines}</pre>
          </section>
          <CopyButton text={lines} what={`the lines for ${client}`} />
        </details>
      ))}
      <p>
        <DocsLink to="clients">All clients</DocsLink>
      </p>
    </>
  );
}

/** Names that are shown before the others are unfolded. */
const SHOWN_MODELS = 12;

function Models({ ids }: { ids: readonly string[] }) {
  const list = (some: readonly string[]) => (
    <ul class="columns">
      {some.map((id) => (
        <li key={id}>
          <a href={linkTo('live', {}, { a: id })}>
            <Name text={id} />
          </a>
        </li>
      ))}
    </ul>
  );
  if (ids.length === 0) return <p class="hint">The list of models is empty.</p>;
  return (
    <>
      {list(ids.slice(0, SHOWN_MODELS))}
      {ids.length > SHOWN_MODELS && (
        <details>
          <summary>{count(ids.length - SHOWN_MODELS)} more</summary>
          {list(ids.slice(SHOWN_MODELS))}
        </details>
      )}
    </>
  );
}
