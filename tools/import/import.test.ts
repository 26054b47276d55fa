/** The import of LiteLLM's configurations: what is written is valid for Weir and means the same; the rest is said. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { SERVICE_ACCOUNT } from '../../test/credentials/fake-google.ts';
import { readSettings } from '../../test/settings/read-settings.ts';
import { readAnswers } from '../setup/answers.ts';
import { decodeObject, objectOf } from '../simulator/json.ts';
import { importLiteLlm } from './litellm.ts';

/** Imports a configuration, and has Weir and the set-up read the result. */
function imported(yaml: string) {
  const { answers, notes } = importLiteLlm(objectOf(parse(yaml)));
  if (answers === null) throw new Error(notes.join());
  const read = readAnswers(JSON.stringify(answers));
  if (read.kind === 'error') throw new Error(read.error.join());
  const { vars, secrets, providers, key } = read.value;
  const keys = providers.flatMap(({ apiKeySettings }) => apiKeySettings);
  const env = {
    ...vars,
    ...Object.fromEntries([...keys, ...secrets].map((name) => [name, 'sk-of-the-test-41a7'])),
    ...Object.fromEntries(
      secrets
        .filter((name) => /SERVICE_ACCOUNT|TEAM_KEY/.test(name))
        .map((name) => [name, JSON.stringify(SERVICE_ACCOUNT)]),
    ),
    ...(secrets.includes('ALERT_URL') && { ALERT_URL: 'https://hooks.example/x' }),
  };
  const settings = readSettings(env);
  expect(settings.kind === 'invalid' ? settings.problems : []).toEqual([]);
  return {
    aliases: decodeObject(vars.ALIASES ?? '{}'),
    entries: decodeObject(vars.PROVIDERS ?? '{}'),
    providers: providers.map(({ id }) => id),
    vars,
    secrets,
    key,
    notes: notes.join('\n'),
  };
}

describe('model_list', () => {
  test('deployments of built-in providers become aliases, bare names go to their maker', () => {
    const { aliases, providers, notes } = imported(`
model_list:
  - model_name: quick
    litellm_params: { model: gpt-4o-mini, api_key: os.environ/OPENAI_API_KEY }
  - model_name: writer
    litellm_params: { model: anthropic/claude-haiku-4-5, api_key: os.environ/ANTHROPIC_API_KEY, stream_timeout: 20 }
  - model_name: mistral/mistral-small-latest
    litellm_params: { model: mistral/mistral-small-latest }
`);
    expect(aliases).toEqual({
      quick: 'openai/gpt-4o-mini',
      writer: { model: 'anthropic/claude-haiku-4-5', timeout_seconds: 20 },
    });
    expect(providers).toEqual(['openai', 'anthropic', 'mistral']);
    expect(notes).toBe('');
  });

  test('several deployments of a name share its requests by weight, rpm or tpm; a higher order comes after', () => {
    const { aliases, entries, secrets, providers } = imported(`
model_list:
  - model_name: chat
    litellm_params: { model: azure/chat-eu, api_base: "https://eu.openai.azure.com/", api_key: os.environ/AZURE_EU, api_version: "2024-10-21", rpm: 30 }
  - model_name: chat
    litellm_params: { model: azure/chat-us, api_base: "https://us.openai.azure.com/", api_key: os.environ/AZURE_US, rpm: 10 }
  - model_name: chat
    litellm_params: { model: groq/llama-3.3-70b-versatile, order: 2 }
`);
    expect(aliases).toEqual({
      chat: [
        { model: 'azure/chat-eu', weight: 30 },
        { model: 'azure-2/chat-us', weight: 10 },
        'groq/llama-3.3-70b-versatile',
      ],
    });
    expect(entries).toMatchObject({
      azure: { base_url: 'https://eu.openai.azure.com/openai/v1', api_key: 'AZURE_EU', like: 'openai' },
      'azure-2': { base_url: 'https://us.openai.azure.com/openai/v1', api_key: 'AZURE_US' },
    });
    expect(secrets).toEqual(['AZURE_EU', 'AZURE_US']);
    expect(providers).toEqual(['groq']);
  });

  test('own servers and a second key of one provider are entries; a server without a key has none', () => {
    const { aliases, entries } = imported(`
model_list:
  - model_name: small
    litellm_params: { model: openai/qwen3-8b, api_base: "http://gpu.internal:8000/v1", api_key: none }
  - model_name: local
    litellm_params: { model: ollama/llama3.2, api_base: "http://127.0.0.1:11434/v1" }
  - model_name: a
    litellm_params: { model: openai/gpt-4o, api_key: os.environ/OPENAI_API_KEY }
  - model_name: b
    litellm_params: { model: openai/gpt-4o, api_key: os.environ/OPENAI_TEAM_B }
`);
    expect(aliases).toEqual({
      small: 'gpu/qwen3-8b',
      local: 'ollama/llama3.2',
      a: 'openai/gpt-4o',
      b: 'openai-2/gpt-4o',
    });
    expect(entries).toEqual({
      gpu: { base_url: 'http://gpu.internal:8000/v1' },
      ollama: { base_url: 'http://127.0.0.1:11434/v1', like: 'ollama' },
      'openai-2': { base_url: 'https://api.openai.com/v1', api_key: 'OPENAI_TEAM_B' },
    });
  });

  test.each([
    'http://vllm.internal:8000',
    'http://vllm:8000/v1',
    'http://10.0.3.7:8000/v1',
    'http://172.20.0.2/v1',
    'http://localhost:11434/v1',
    'http://[fd00::12]/v1',
    'https://llm.models.svc.cluster.local/v1',
  ])('a server that no Worker reaches is told with its ways out: %s', (url) => {
    const { notes, entries } = imported(`
model_list:
  - model_name: own
    litellm_params: { model: hosted_vllm/qwen3, api_base: "${url}", api_key: none }
`);
    expect(Object.keys(entries ?? {})).toEqual(['vllm']);
    expect(notes).toContain(`own: no Worker reaches ${new URL(url).hostname}: `);
    for (const way of ['service binding', 'Workers VPC', 'Cloudflare Tunnel', 'entry vllm'])
      expect(notes).toContain(way);
  });

  test.each(['https://llm.example.com/v1', 'http://203.0.113.7:8000/v1', 'https://internal.example.com/v1'])(
    'a server with a public address is not: %s',
    (url) => {
      const { notes } = imported(`
model_list:
  - model_name: own
    litellm_params: { model: hosted_vllm/qwen3, api_base: "${url}", api_key: none }
`);
      expect(notes).not.toContain('no Worker reaches');
    },
  );

  test('prices become PRICES, and alerting the secrets of alerts; prices of another unit are said', () => {
    const { vars, secrets, notes } = imported(`
model_list:
  - model_name: own
    litellm_params: { model: hosted_vllm/qwen3, api_base: "https://llm.example.com/v1" }
    model_info: { input_cost_per_token: 0.0000001, output_cost_per_token: 0.0000004, cache_read_input_token_cost: 0.00000002, input_cost_per_image: 0.01 }
general_settings: { alerting: [slack] }
`);
    expect(JSON.parse(String(vars.PRICES))).toEqual([
      {
        ...{ provider: 'vllm', models: ['qwen3'], since: '2024-01-01', currency: 'USD' },
        ...{ input: 0.1, cached_input: 0.02, output: 0.4 },
      },
    ]);
    expect(secrets).toEqual(['ALERT_URL', 'ALERT_SECRET']);
    expect(notes).toContain('own: model_info has prices that are not copied: input_cost_per_image');
    expect(notes).toContain('general_settings.alerting is ALERT_URL here');
    expect(notes).toContain('Slack takes them at the URL of an incoming webhook');
  });

  test('Azure: the entry names the model behind a deployment, where base_model says it', () => {
    const { entries } = imported(`
model_list:
  - model_name: chat
    litellm_params: { model: azure/prod-gpt, api_base: "https://eu.openai.azure.com/", api_key: os.environ/AZURE_EU }
    model_info: { base_model: azure/gpt-4o-mini }
`);
    expect(entries).toMatchObject({ azure: { models: { 'prod-gpt': 'openai/gpt-4o-mini' } } });
  });

  test('Bedrock: one region by an API key; another region, no region and keys of IAM are said', () => {
    const { aliases, vars, providers, notes } = imported(`
model_list:
  - model_name: claude
    litellm_params: { model: bedrock/converse/us.anthropic.claude-haiku-4-5-20251001-v1:0, aws_region_name: us-east-1, aws_access_key_id: os.environ/AWS_ID }
  - model_name: oss
    litellm_params: { model: bedrock/us-east-1/openai.gpt-oss-120b }
  - model_name: far
    litellm_params: { model: bedrock/openai.gpt-oss-120b, aws_region_name: eu-west-1 }
  - model_name: nowhere
    litellm_params: { model: bedrock/openai.gpt-oss-120b }
`);
    expect(aliases).toEqual({
      claude: 'bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0',
      oss: 'bedrock/openai.gpt-oss-120b',
    });
    expect(vars.AWS_REGION).toBe('us-east-1');
    expect(providers).toEqual(['bedrock']);
    expect(notes).toContain('claude: keys and roles of IAM are not copied');
    expect(notes).toContain('far: bedrock/openai.gpt-oss-120b is not copied: it is in eu-west-1');
    expect(notes).toContain('nowhere: bedrock/openai.gpt-oss-120b is not copied: name its region');
  });

  test('Vertex AI: Gemini, Claude and open models are entries by project and location, with a service account', () => {
    const { aliases, entries, secrets, notes } = imported(`
model_list:
  - model_name: pro
    litellm_params: { model: vertex_ai/gemini-3-pro, vertex_project: p, vertex_location: global }
  - model_name: opus
    litellm_params: { model: vertex_ai/claude-opus-4-5@20251101, vertex_project: p }
  - model_name: llama
    litellm_params: { model: vertex_ai/meta/llama-4-maverick-17b-128e-instruct-maas, vertex_project: p, vertex_location: eu, vertex_credentials: /etc/other.json }
  - model_name: named
    litellm_params: { model: vertex_ai/gemini-3-flash, vertex_project: q, vertex_location: europe-west4, vertex_credentials: os.environ/TEAM_KEY }
  - model_name: tuned
    litellm_params: { model: vertex_ai/gemini/4965075652664360960, vertex_project: p }
  - model_name: nowhere
    litellm_params: { model: vertex_ai/gemini-3-pro }
`);
    expect(aliases).toEqual({
      pro: 'vertex/gemini-3-pro',
      opus: 'vertex-claude/claude-opus-4-5@20251101',
      llama: 'vertex-open/meta/llama-4-maverick-17b-128e-instruct-maas',
      named: 'vertex-2/gemini-3-flash',
    });
    const [own, other] = ['GOOGLE_SERVICE_ACCOUNT', 'GOOGLE_SERVICE_ACCOUNT_2'];
    expect(entries).toEqual({
      vertex: {
        base_url: 'https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google',
        auth: { google: own },
      },
      'vertex-claude': {
        base_url:
          'https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1/publishers/anthropic',
        auth: { google: own },
      },
      'vertex-open': {
        base_url: 'https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/endpoints/openapi',
        auth: { google: other },
      },
      'vertex-2': {
        base_url:
          'https://europe-west4-aiplatform.googleapis.com/v1/projects/q/locations/europe-west4/publishers/google',
        auth: { google: 'TEAM_KEY' },
      },
    });
    expect(secrets).toEqual([own, other, 'TEAM_KEY']);
    expect(notes).toContain(`${own}=@key.json`);
    expect(notes).not.toContain('/etc/other.json');
    expect(notes).toContain('tuned: vertex_ai/gemini/4965075652664360960 has no counterpart');
    expect(notes).toContain('nowhere: vertex_ai/gemini-3-pro is not copied');
  });

  test('globs stay globs', () => {
    const { aliases, notes } = imported(`
model_list:
  - model_name: "claude-*"
    litellm_params: { model: "anthropic/claude-*" }
  - model_name: "anthropic/*"
    litellm_params: { model: "anthropic/*" }
  - model_name: "*"
    litellm_params: { model: "*" }
`);
    expect(aliases).toEqual({ 'claude-*': 'anthropic/claude-*' });
    expect(notes).toContain('*: every model of every provider can be called by its address');
  });

  test('body fields are set, credentials are looked up, and keys in the file are never copied', () => {
    const { aliases, vars, notes } = imported(`
model_list:
  - model_name: cold
    litellm_params: { model: openai/gpt-4o, litellm_credential_name: team, temperature: 0.2 }
  - model_name: leaked
    litellm_params: { model: xai/grok-4.7, api_key: xai-literal-5f1e, mock_response: hi }
credential_list:
  - credential_name: team
    credential_values: { api_key: os.environ/OPENAI_API_KEY }
`);
    expect(aliases).toMatchObject({ cold: { model: 'openai/gpt-4o', set: { temperature: 0.2 } } });
    expect(JSON.stringify(vars)).not.toContain('xai-literal');
    for (const said of [
      'cold: temperature replaces',
      'leaked: the configuration contains a key',
      'XAI_API_KEY=…',
      'leaked: mock_response has no counterpart',
    ])
      expect(notes).toContain(said);
  });

  test('a provider without a counterpart is said, and not written', () => {
    const { aliases, notes } = imported(`
model_list:
  - model_name: titan
    litellm_params: { model: sagemaker/titan-text, aws_region_name: us-east-1 }
  - model_name: ok
    litellm_params: { model: deepseek/deepseek-chat }
`);
    expect(aliases).toEqual({ ok: 'deepseek/deepseek-chat' });
    expect(notes).toContain('titan: sagemaker/titan-text has no counterpart');
  });
});

test('fallbacks become further steps, those for long prompts and content filters with `on`; group aliases are aliases', () => {
  const { aliases, vars, notes } = imported(`
model_list:
  - { model_name: main, litellm_params: { model: openai/gpt-4o } }
  - { model_name: spare, litellm_params: { model: anthropic/claude-haiku-4-5 } }
  - { model_name: long, litellm_params: { model: gemini/gemini-2.5-flash } }
router_settings:
  fallbacks: [{ main: [spare, gone] }]
  context_window_fallbacks: [{ main: [long] }]
  model_group_alias: { gpt-4: main, old: { model: spare, hidden: true } }
  num_retries: 9
  timeout: 45
  redis_host: redis.internal
litellm_settings:
  content_policy_fallbacks: [{ spare: [long] }]
  default_fallbacks: [long]
`);
  const main = [
    { model: 'openai/gpt-4o', on: ['context_length'] },
    'anthropic/claude-haiku-4-5',
    'gemini/gemini-2.5-flash',
  ];
  const spare = [{ model: 'anthropic/claude-haiku-4-5', on: ['content_filter'] }, 'gemini/gemini-2.5-flash'];
  expect(aliases).toEqual({ main, spare, long: 'gemini/gemini-2.5-flash', 'gpt-4': main, old: spare });
  expect(vars).toMatchObject({ RETRIES: '5', DEADLINE_SECONDS: '45' });
  for (const said of [
    'main: its fallback gone',
    'num_retries is 5 at most',
    'old: GET /v1/models lists it',
    'redis_host is not needed',
  ])
    expect(notes).toContain(said);
});

test('budgets and limits of keys and users become those of the first key', () => {
  const { key, notes } = imported(`
model_list:
  - { model_name: m, litellm_params: { model: openai/gpt-4o } }
litellm_settings:
  default_key_generate_params: { max_budget: 12.5, budget_duration: 30d, rpm_limit: 60, tpm_limit: 90000, max_parallel_requests: 4 }
  max_internal_user_budget: 2
  internal_user_budget_duration: 1d
  max_budget: 500
general_settings: { master_key: os.environ/LITELLM_MASTER_KEY, database_url: os.environ/DATABASE_URL }
`);
  expect(key).toEqual({
    name: 'first',
    budget: { USD: 12.5, per: 'month' },
    rpm: 60,
    tpm: 90_000,
    max_concurrent: 4,
    per_user: { budget: { USD: 2, per: 'day' } },
  });
  for (const said of [
    'max_budget of the proxy has no counterpart',
    'master_key is the secret ADMIN_TOKEN',
    'database_url is not needed',
  ])
    expect(notes).toContain(said);
});

test.each([
  ['24h', 'day', false],
  ['7d', 'week', false],
  ['1mo', 'month', false],
  ['14d', 'month', true],
])('a budget of %s becomes one per %s, and says so where that differs: %s', (duration, per, isSaid) => {
  const { key, notes } = imported(`
model_list:
  - { model_name: m, litellm_params: { model: openai/gpt-4o } }
litellm_settings:
  default_key_generate_params: { max_budget: 3, budget_duration: ${duration} }
`);
  expect(key).toMatchObject({ budget: { USD: 3, per } });
  expect(notes.includes(`so ${duration} became a month`)).toBe(isSaid);
});

test('npm run import writes a file once, prints what differs, and names a file that is no configuration', () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-import-'));
  const run = (...args: string[]) => {
    const tool = join(import.meta.dirname, '..', 'import.ts');
    const { status, stdout, stderr } = spawnSync(process.execPath, [tool, ...args], {
      cwd: folder,
      encoding: 'utf8',
    });
    return { status, text: stdout + stderr };
  };
  try {
    writeFileSync(
      join(folder, 'config.yaml'),
      'model_list: [{ model_name: q, litellm_params: { model: openai/gpt-4o } }]\nguardrails: []\n',
    );
    writeFileSync(join(folder, 'other.yaml'), 'services: {}\n');
    const first = run('config.yaml');
    expect(first).toMatchObject({ status: 0 });
    expect(first.text).toContain('- guardrails has no counterpart');
    const text = readFileSync(join(folder, 'setup.json'), 'utf8');
    expect(objectOf(decodeObject(text)?.vars).ALIASES).toEqual({ q: 'openai/gpt-4o' });
    expect(text).toContain('    "ALIASES": {\n      "q": "openai/gpt-4o"\n    }');
    expect(run('config.yaml')).toMatchObject({
      status: 2,
      text: expect.stringContaining('setup.json exists'),
    });
    expect(run('other.yaml')).toMatchObject({ status: 2, text: expect.stringContaining('no model_list') });
    for (const [yaml, text] of [
      ['model_list: []\n', 'its model_list has no models, so nothing is written'],
      ['model_list:\n', 'its model_list has no models, so nothing is written'],
      [
        'model_list: [{ model_name: a, litellm_params: { model: nowhere/m } }]\n',
        'nothing of its model_list has a counterpart, so nothing is written',
      ],
    ] as const) {
      writeFileSync(join(folder, 'empty.yaml'), yaml);
      expect(run('empty.yaml', '--out', 'empty.json')).toMatchObject({
        status: 2,
        text: expect.stringContaining(text),
      });
      expect(existsSync(join(folder, 'empty.json'))).toBe(false);
    }
    expect(run('missing.yaml')).toMatchObject({ status: 2 });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

describe('secrets', () => {
  /** What was written: nothing of it may be a secret of the configuration. */
  const written = ({ vars, secrets, notes }: ReturnType<typeof imported>) =>
    JSON.stringify([vars, secrets, notes]);

  test('in headers become names of secrets; headers that have none, and references, stay what they are', () => {
    const all = imported(`
model_list:
  - model_name: a
    litellm_params:
      model: openai/m
      api_base: https://a.example/v1
      extra_headers:
        Authorization: "Bearer sk-live-1111"
        x-api-key: sk-live-2222
        X-Team: team-3333
        x-number: 4444
        x-own: os.environ/GATE_KEY
        x-evil: os.environ/ADMIN_TOKEN
        HTTP-Referer: https://us.example
`);
    expect(written(all)).not.toMatch(/1111|2222|3333|4444/);
    const [{ headers } = { headers: null }] = Object.values(objectOf(all.entries)).map(objectOf);
    expect(headers).toEqual({
      Authorization: '$A_AUTHORIZATION',
      'x-api-key': '$A_X_API_KEY',
      'X-Team': '$A_X_TEAM',
      'x-number': '$A_X_NUMBER',
      'x-own': '$GATE_KEY',
      'x-evil': '$A_X_EVIL',
      'HTTP-Referer': 'https://us.example',
    });
    expect(all.secrets).toEqual(expect.arrayContaining(['A_AUTHORIZATION', 'A_X_API_KEY', 'GATE_KEY']));
    expect(all.notes).toContain('A_AUTHORIZATION=…');
  });

  test('in URLs become names of secrets: user, password and parameters', () => {
    const all = imported(`
model_list:
  - model_name: a
    litellm_params: { model: hosted_vllm/m, api_base: "http://user1:PASSWORD1@llm.example:8000/v1" }
  - model_name: b
    litellm_params: { model: openai/m, api_base: "https://b.example/v1?sig=SIGN2&api-version=2026-01-01#FRAGMENT3" }
  - model_name: c
    litellm_params: { model: openai/gpt-4o-mini, api_base: "https://:PASSWORD4@api.openai.com/v1" }
`);
    expect(written(all)).not.toMatch(/user1|PASSWORD|SIGN2|FRAGMENT3/);
    expect(all.entries).toMatchObject({
      vllm: { base_url: 'http://llm.example:8000/v1', headers: { authorization: '$VLLM_AUTHORIZATION' } },
      b: { base_url: 'https://b.example/v1', query: { sig: '$B_SIG', 'api-version': '2026-01-01' } },
    });
    expect(all.providers).toEqual([]);
  });

  test.each(['ADMIN_TOKEN', 'USER_HASH_KEY', 'ALERT_SECRET'])(
    'api_key %s is not given to a provider: the note names another secret',
    (name) => {
      const all = imported(`
model_list:
  - model_name: a
    litellm_params: { model: openai/m, api_base: "https://evil.example/v1", api_key: os.environ/${name} }
`);
      expect(JSON.stringify([all.vars, all.secrets])).not.toContain(name);
      expect(all.notes).toContain(name);
      expect(all.entries).toMatchObject({ evil: { api_key: 'OPENAI_API_KEY' } });
    },
  );

  test('two headers of one name are two secrets, and no name is that of a setting', () => {
    const all = imported(`
model_list:
  - model_name: a
    litellm_params: { model: openai/m, api_base: "https://admin.example/v1", extra_headers: { token: t1, Token: t2 } }
  - model_name: b
    litellm_params: { model: openai/m, api_base: "https://openai.example/v1", extra_headers: { api-key: t3 } }
`);
    const [admin = {}, openai = {}] = Object.values(objectOf(all.entries)).map((entry) =>
      objectOf(objectOf(entry).headers),
    );
    expect(new Set(Object.values(admin)).size).toBe(2);
    expect(Object.values(admin)).not.toContain('$ADMIN_TOKEN');
    expect(Object.values(openai)).not.toContain('$OPENAI_API_KEY');
  });
});
