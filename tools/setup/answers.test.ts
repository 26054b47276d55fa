/**
 * The checks of the answers: Weir's own checks of settings and of the first key, environments, addresses, and the
 * secrets that they need.
 */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { parse } from 'smol-toml';
import { afterAll, describe, expect, test } from 'vitest';
import { SERVICE_ACCOUNT } from '../../test/credentials/fake-google.ts';
import { objectOf } from '../simulator/json.ts';
import { type Answers, readAnswers, secretOf } from './answers.ts';
import { askAnswers, type Draft, Terminal, writeDraft } from './ask.ts';
import { planSteps } from './steps.ts';
import { changeConfig, PRODUCTION } from './wrangler-config.ts';

const CONFIG = `name = "weir"

[[kv_namespaces]]
binding = "WEIR_KV"

[[durable_objects.bindings]]
name = "WEIR_LEDGER"
class_name = "LedgerObject"

[[services]]
binding = "VPC_LLM"
service = "llm"
`;

function read(
  file: object,
  { config = CONFIG, env = {} }: { config?: string; env?: NodeJS.ProcessEnv } = {},
) {
  return readAnswers(JSON.stringify({ providers: ['openai'], ...file }), {
    config,
    env,
    now: Date.parse('2026-11-28'),
  });
}

function problemsOf(file: object, given = {}): string {
  const answers = read(file, given);
  return answers.kind === 'error' ? answers.error.join('\n') : '';
}

function valid(file: object, given = {}): Answers {
  const answers = read(file, given);
  if (answers.kind === 'error') throw new Error(answers.error.join('\n'));
  return answers.value;
}

describe('readAnswers, problems', () => {
  test.each([
    [
      'a value that the setting does not have',
      { vars: { LEDGER: 'sql' } },
      'vars.LEDGER must be one of: kv, object',
    ],
    ['a misspelt setting', { vars: { LEGDER: 'object' } }, 'vars.LEGDER is no setting: did you mean LEDGER?'],
    [
      'a misspelt setting beside the right one',
      { vars: { RETRYS: '2', RETRIES: '2' } },
      'vars.RETRYS is no setting: did you mean RETRIES?',
    ],
    [
      'a setting without its binding',
      { vars: { RESPONSES: 'durable' } },
      'WEIR_RESPONSES must be bound to the Durable Object ResponseObject, because RESPONSES is durable',
    ],
    [
      'an alias for a provider that is not set up',
      { vars: { ALIASES: '{"a": "mistral/b"}' } },
      'vars.ALIASES a: must be <provider>/<model> with a provider that is set up here: openai',
    ],
    [
      'a provider without its address',
      { providers: ['opentoken'] },
      'OPENTOKEN_BASE_URL must be set, because OPENTOKEN_API_KEY is',
    ],
    [
      'a binding that the file does not have',
      { vars: { PROVIDERS: { a: { base_url: 'http://a/v1', binding: 'VPC_OTHER' } } } },
      'vars.PROVIDERS a: binding names no service binding of this Worker: VPC_OTHER',
    ],
    [
      'a key with an unknown field',
      { key: { name: 'a', bugdet: { USD: 5 } } },
      'key: A key has no field "bugdet": did you mean budget?',
    ],
    [
      'a key whose budget has no prices',
      { key: { name: 'a', budget: { EUR: 5, per: 'month' } } },
      'key: No model has a price in EUR',
    ],
    [
      'a misspelt field of the team',
      { team: { name: 'a', rmp: 5 } },
      'team: A team has no field "rmp": did you mean rpm?',
    ],
    [
      'a team whose budget has no prices',
      { team: { name: 'a', budget: { EUR: 5, per: 'month' } } },
      'team: No model has a price in EUR',
    ],
    ['a team without a name', { team: { rpm: 5 } }, 'team must be the name of a team, or an object'],
    [
      'a key of another team than the first one',
      { team: 'search', key: { name: 'a', team: '0123456789abcdef' } },
      'key: its team is the one that the answers make',
    ],
    ['a key that has expired', { key: { name: 'a', expires_at: 'soon' } }, 'key: expires_at'],
    [
      'an environment that is there twice',
      { environments: ['production', 'production'] },
      'environments has "production" more than once',
    ],
    [
      'the name of an environment',
      { environments: ['Staging'] },
      'environments: "Staging" must be 1 to 20 lowercase letters, digits and dashes, and begin with a letter',
    ],
    [
      'a Worker and an environment whose names are together too long',
      { worker: 'w'.repeat(54), environments: ['production', 'e'.repeat(20)] },
      'is longer than 63 characters',
    ],
    [
      'the address of another environment',
      { environments: ['production', 'staging'], addresses: { stagin: 'https://a.example' } },
      'addresses: "stagin" is not among environments: did you mean staging?',
    ],
    ['an address with a query', { addresses: { production: 'https://a.example/?b=1' } }, 'addresses must be'],
    [
      'a variable without a value',
      { vars: { RETRIES: null } },
      'vars.RETRIES must be a text, an object or a list',
    ],
  ])('%s is named', (_, file, problem) => {
    expect(problemsOf(file)).toContain(problem);
  });

  test('all problems are named at once, each once for all environments, and with the environment where it is in one', () => {
    const config = `${CONFIG}\n[vars]\nAUTH = "keys"\n\n[env.staging.vars]\nRETRIES = "9"\n`;
    const file = {
      environments: ['production', 'staging'],
      vars: { LEDGER: 'sql' },
      key: { name: 'a', rpm: 0 },
      worker: 'A',
    };
    expect(problemsOf(file, { config }).split('\n')).toEqual([
      'worker must be 1 to 54 lowercase letters, digits and dashes',
      'vars.LEDGER must be one of: kv, object',
      'RETRIES in wrangler.toml must be a whole number from 0 to 5 (staging)',
      expect.stringMatching(/^key: rpm must be/),
    ]);
  });

  test('a text that is no JSON has the position of the error', () => {
    const answers = readAnswers('{\n  "providers": ["openai"],\n}');
    expect(answers).toEqual({
      kind: 'error',
      error: [
        'The answers must be a JSON object, and the text is not valid JSON: the error is at line 3, column 1',
      ],
    });
  });

  test('secrets that are given are checked, and never shown', () => {
    const env = { ALERT_URL: 'ftp://hunter2.example', OPENAI_API_KEY: 'sk' };
    const text = problemsOf({}, { env });
    expect(text).toBe('ALERT_URL must be an https URL, or an http URL of localhost');
  });
});

describe('readAnswers, values', () => {
  test('objects and lists of vars are JSON text of several lines, numbers are texts, and the file stays readable', () => {
    const ALIASES = { chat: ['openai/gpt-6.1-luna', { model: 'openai/gpt-5.5', timeout_seconds: 20 }] };
    const { vars } = valid({ vars: { ALIASES, RETRIES: 2 } });
    expect(vars).toEqual({ ALIASES: JSON.stringify(ALIASES, null, 2), RETRIES: '2' });
    const namespaces = new Map([
      [PRODUCTION, 'id-1'],
      ['staging', 'id-2'],
    ]);
    const { text } = changeConfig(CONFIG, { worker: 'weir', namespaces, vars });
    // Once for each environment.
    expect(text.split(`ALIASES = '''{\n  "chat": [\n    "openai/gpt-6.1-luna",\n`)).toHaveLength(3);
    expect(objectOf(parse(text).vars)).toEqual(vars);
    expect(changeConfig(text, { worker: 'weir', namespaces, vars }).text).toBe(text);
  });

  test('secrets that PROVIDERS, and settings of alerts and of users name are collected for the environments that need them', () => {
    const PROVIDERS = {
      groq: { base_url: 'https://api.groq.com/openai/v1', api_key: 'GROQ_TEAM_KEY' },
      gate: {
        base_url: 'https://g.example/v1',
        headers: { 'x-gate': '$GATE_KEY' },
        query: { k: '$GATE_PARAM' },
      },
    };
    const config = `${CONFIG}\n[env.staging.vars]\nUSERS = "hash"\n`;
    const { neededSecrets } = valid(
      { environments: ['production', 'staging'], vars: { PROVIDERS } },
      { config, env: { ALERT_URL: 'https://hooks.example/x', ALERT_SECRET: 'long enough to sign' } },
    );
    const shared = ['ADMIN_TOKEN', 'OPENAI_API_KEY', 'GROQ_TEAM_KEY', 'GATE_KEY', 'GATE_PARAM'];
    expect(neededSecrets.get('production')?.toSorted()).toEqual(
      [...shared, 'ALERT_URL', 'ALERT_SECRET'].toSorted(),
    );
    expect(neededSecrets.get('staging')?.toSorted()).toEqual(
      [...shared, 'ALERT_URL', 'ALERT_SECRET', 'USER_HASH_KEY'].toSorted(),
    );
    const alone = valid(
      {},
      { env: { STAGING_ALERT_URL: 'https://hooks.example/x', ALERT_URL: 'https://hooks.example/y' } },
    );
    expect(alone.neededSecrets.get('production')).toEqual([
      'ADMIN_TOKEN',
      'OPENAI_API_KEY',
      'ALERT_URL',
      'ALERT_SECRET',
    ]);
  });

  test('what does not stop a deployment is a note: warnings of the key, variables that Weir does not read', () => {
    const { notes } = valid({ vars: { OF_ANOTHER_TOOL: 'x' }, key: { name: 'a', models: ['mistral/*'] } });
    expect(notes.join('\n')).toContain('key: mistral/* matches no model: the provider mistral is not set up');
    expect(notes.join('\n')).toContain('vars.OF_ANOTHER_TOOL is no setting of Weir');
    const base_url = 'http://llm.internal:8000/v1';
    const own = valid({
      vars: { PROVIDERS: { own: { base_url }, bound: { base_url, binding: 'VPC_LLM' } } },
    });
    expect(own.notes).toEqual([expect.stringContaining('PROVIDERS own: no Worker reaches llm.internal: ')]);
  });
});

/** Types these lines at once. */
async function asked(lines: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const [input, output] = [new PassThrough(), new PassThrough()];
  let shown = '';
  output.on('data', (data: Buffer) => (shown += data));
  const draft: Draft = {};
  const terminal = new Terminal(input, output);
  const surroundings = { config: CONFIG, env, now: Date.parse('2026-11-28') };
  const asking = askAnswers(terminal, draft, surroundings).catch((error: Error) => error.message);
  input.end(lines.map((line) => `${line}\n`).join(''));
  const ended = await asking;
  terminal.close();
  return { draft, env, shown, ended, read: readAnswers(writeDraft(draft), surroundings) };
}

describe('askAnswers', () => {
  test('each wrong answer is asked again with what is wrong, and what else was typed stays', async () => {
    const { draft, env, shown, read } = await asked([
      ...['Bad Name', 'llm', 'perhaps', 'y', 'openai, antropic', 'openai opentoken'],
      ...['sk with spaces', 'sk-openai', 'token', 'no url', 'https://ot.example/v1', '', ''],
    ]);
    for (const line of [
      'worker must be 1 to 54 lowercase letters, digits and dashes',
      'Type y or n',
      'antropic is no provider: did you mean anthropic?',
      'It has spaces or characters that no key has',
      'vars.OPENTOKEN_BASE_URL must be an http(s) URL',
    ])
      expect(shown.split(line)).toHaveLength(2);
    expect(shown).not.toContain('sk-openai');
    expect(draft).toEqual({
      worker: 'llm',
      environments: ['production', 'staging'],
      providers: ['openai', 'opentoken'],
      vars: { OPENTOKEN_BASE_URL: 'https://ot.example/v1' },
      key: 'first',
    });
    expect(env).toEqual({ OPENAI_API_KEY: 'sk-openai', OPENTOKEN_API_KEY: 'token' });
    expect(read.kind).toBe('ok');
  });

  test('a server of any provider can be chosen, with and without a key', async () => {
    const { draft, env, read } = await asked([
      ...['', 'n', 'other', 'openai', 'acme-llm', 'acme.example', 'https://acme.example/v1', 'sk-acme'],
      ...['y', 'local', 'https://gpu.example/v1', '', 'n', 'team'],
    ]);
    expect(draft).toMatchObject({
      providers: [],
      vars: {
        PROVIDERS: {
          'acme-llm': { base_url: 'https://acme.example/v1', api_key: 'ACME_LLM_API_KEY' },
          local: { base_url: 'https://gpu.example/v1' },
        },
      },
      key: 'team',
    });
    expect(env).toEqual({ ACME_LLM_API_KEY: 'sk-acme' });
    expect(read.kind === 'ok' && read.value.neededSecrets.get('production')).toContain('ACME_LLM_API_KEY');
  });

  test('an end in the middle keeps what was answered', async () => {
    const { draft, ended } = await asked(['llm', 'n', 'openai']);
    expect(ended).toBe('Interrupted');
    expect(draft).toEqual({ worker: 'llm', environments: ['production'], providers: ['openai'], vars: {} });
  });
});

describe('askAnswers, where a credential is made', () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-ask-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const keyFile = join(folder, 'key.json');
  const pemFile = join(folder, 'app certificate.pem');
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const pem = `${privateKey}-----BEGIN CERTIFICATE-----\n${btoa('a certificate')}\n-----END CERTIFICATE-----\n`;
  writeFileSync(keyFile, JSON.stringify(SERVICE_ACCOUNT, null, 2));
  writeFileSync(pemFile, pem);

  test('the key of a service account is asked for by its path', async () => {
    const { shown, env, read, draft } = await asked([
      ...['llm', 'n', 'vertex', join(folder, 'absent.json'), pemFile, keyFile, ''],
    ]);
    expect(shown).toContain('GOOGLE_SERVICE_ACCOUNT, the path of');
    expect(shown).toContain('absent.json cannot be read');
    expect(shown).toContain('is not the JSON file of');
    expect(shown).not.toContain('PRIVATE KEY');
    expect(secretOf(env, PRODUCTION, 'GOOGLE_SERVICE_ACCOUNT')).toBe(
      JSON.stringify(SERVICE_ACCOUNT, null, 2),
    );
    expect(JSON.stringify(draft)).not.toContain('PRIVATE KEY');
    if (read.kind === 'error') throw new Error(read.error.join());
    expect(read.value.neededSecrets.get('production')).toContain('GOOGLE_SERVICE_ACCOUNT');
    expect(read.value.neededSecrets.get('production')).not.toContain('VERTEX_API_KEY');
  });

  test('without a path: by the key of express mode', async () => {
    const { env, read } = await asked(['llm', 'n', 'vertex', '', 'key-of-express', '']);
    expect(env).toEqual({ VERTEX_API_KEY: 'key-of-express' });
    expect(read.kind === 'ok' && read.value.neededSecrets.get('production')).toContain('VERTEX_API_KEY');
  });

  test('an application of Entra ID: its certificate by a path, or its secret', async () => {
    const ids = ['00000000-0000-0000-0000-000000000000', '11111111-1111-1111-1111-111111111111'];
    const byFile = await asked(['llm', 'n', 'azure', '', ...ids, `'${pemFile}'`, 'acme', '']);
    expect(byFile.draft.vars).toEqual({
      ...{ AZURE_TENANT_ID: ids[0], AZURE_CLIENT_ID: ids[1], AZURE_RESOURCE: 'acme' },
    });
    expect(secretOf(byFile.env, PRODUCTION, 'AZURE_CLIENT_CERTIFICATE')).toBe(pem);
    expect(byFile.read.kind).toBe('ok');
    const bySecret = await asked(['llm', 'n', 'azure', '', ...ids, '', 's3cret~value', 'acme', '']);
    expect(bySecret.env).toEqual({ AZURE_CLIENT_SECRET: 's3cret~value' });
    expect(bySecret.shown).not.toContain('s3cret~value');
    expect(bySecret.read.kind === 'ok' && bySecret.read.value.neededSecrets.get('production')).toEqual(
      expect.arrayContaining(['AZURE_CLIENT_SECRET']),
    );
  });

  test('a path in the environment that cannot be read is a problem', () => {
    const env = { GOOGLE_SERVICE_ACCOUNT: `@${join(folder, 'absent.json')}` };
    const checked = read({ providers: ['vertex'] }, { env });
    expect(checked).toMatchObject({ kind: 'error' });
    expect(JSON.stringify(checked)).toContain('GOOGLE_SERVICE_ACCOUNT names a file that cannot be read');
  });

  test('a dry run names the secret, and shows nothing of the file', async () => {
    const config = join(folder, 'wrangler.toml');
    writeFileSync(config, CONFIG);
    const env = { GOOGLE_SERVICE_ACCOUNT: `@${keyFile}` };
    const checked = read({ providers: ['vertex'] }, { env });
    if (checked.kind === 'error') throw new Error(checked.error.join());
    const steps = planSteps(checked.value, { root: folder, env, print: () => {} });
    const shown = steps.flatMap((step) => step.shown).join('\n');
    expect(shown).toContain('GOOGLE_SERVICE_ACCOUNT: from the environment of this command');
    expect(shown).not.toMatch(/PRIVATE|acme-llm/);
  });
});

describe('the secrets of credentials that are made', () => {
  const AWS = { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 'secret' };
  const bedrock = { providers: ['bedrock'], vars: { AWS_REGION: 'us-east-1' } };
  const neededOf = (checked: ReturnType<typeof read>) =>
    checked.kind === 'ok' ? (checked.value.neededSecrets.get('production') ?? []) : checked.error;

  test('of AWS, where no API key is given: both are set up, and a key takes precedence', () => {
    expect(neededOf(read(bedrock, { env: AWS }))).toEqual(
      expect.arrayContaining(['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']),
    );
    expect(neededOf(read(bedrock, { env: AWS }))).not.toContain('AWS_BEARER_TOKEN_BEDROCK');
    const both = { ...AWS, AWS_BEARER_TOKEN_BEDROCK: 'k' };
    expect(neededOf(read(bedrock, { env: both }))).not.toContain('AWS_ACCESS_KEY_ID');
  });

  test('of an entry of PROVIDERS: those that its auth names', () => {
    const auth = { aws: { access_key_id: 'WEST_ID', secret_access_key: 'WEST_SECRET' } };
    const entry = { base_url: 'https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1', auth };
    const checked = read({ vars: { PROVIDERS: { west: entry } } });
    expect(neededOf(checked)).toEqual(expect.arrayContaining(['WEST_ID', 'WEST_SECRET']));
    const own = { ...entry, auth: { aws: { ...auth.aws, secret_access_key: 'ADMIN_TOKEN' } } };
    expect(String(neededOf(read({ vars: { PROVIDERS: { west: own } } })))).toContain('ADMIN_TOKEN');
  });

  test('a secret with line ends is the text of a file, by its path', async () => {
    const path = join(tmpdir(), `weir-key-${process.pid}.json`);
    await writeFile(path, JSON.stringify(SERVICE_ACCOUNT, null, 2));
    const env = { GOOGLE_SERVICE_ACCOUNT: `@${path}` };
    expect(neededOf(read({ providers: ['vertex'] }, { env }))).toContain('GOOGLE_SERVICE_ACCOUNT');
    expect(secretOf(env, PRODUCTION, 'GOOGLE_SERVICE_ACCOUNT')).toContain('PRIVATE KEY');
    await rm(path);
  });
});
