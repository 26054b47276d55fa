/** The rows of the bench: the Worker of each, its configuration and its requests. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Ports } from './jobs.ts';
import type { Treatment } from './load/check.ts';
import type { StreamName } from './streams.ts';
import { UPSTREAM_PREFIX } from './workers/upstream.ts';

export type SectionName = 'bulk' | 'paced' | 'cold' | 'requests' | 'prompts';

export interface Row {
  readonly name: string;
  readonly what: string;
  readonly main: URL;
  readonly treatment: Treatment;
  readonly sections: readonly SectionName[];
  /** Text bindings. */
  readonly settings: (upstream: string) => Readonly<Record<string, string>>;
  readonly hasKv: boolean;
  /** Whether the ledger objects are bound. */
  readonly hasLedger: boolean;
  /** The limits of the key that its requests use. */
  readonly limits: Readonly<Record<string, unknown>>;
  /** The path of its requests. `{model}` stands for the model's name. */
  readonly path: string;
  readonly modelPrefix: (stream: StreamName) => string;
  /** The only stream with which it is called. Absent: every stream that it reads. */
  readonly onlyStream?: StreamName;
  readonly headers: (upstream: string) => Readonly<Record<string, string>>;
  /** Packages that a file of the bench replaces. */
  readonly alias: Readonly<Record<string, string>>;
  /** A text of the bundle that this row replaces. If the bundle doesn't have it, the row is skipped. */
  readonly replace: readonly [from: string, to: string] | null;
  /** A file of Weir's without which a checkout does not have what the row measures. Absent: each has it. */
  readonly needs?: string;
  /** Streams whose protocol it does not know. */
  readonly unknownStreams: readonly StreamName[];
  readonly isWeir: boolean;
  /** Whether it runs with the compatibility flags of Weir. */
  readonly hasWeirFlags: boolean;
  /** A third-party package. If it can't be installed or run, the bench reports that and continues. */
  readonly isPeer: boolean;
}

const STREAMING: readonly SectionName[] = ['bulk', 'paced', 'cold'];
export const ADMIN_TOKEN = 'bench-admin';
/** Streams with the same name as their provider; the others are sent by DeepSeek. */
const OWN_PROVIDERS: readonly StreamName[] = ['mistral', 'xerotier', 'anthropic', 'gemini', 'converse'];

/** The minimal cost of a metering gateway. The goals for requests are multiples of it. */
export const FLOOR = 'floor';

/** High enough that none is ever reached. */
const EVERY_LIMIT = {
  budget: { tokens: 1e15, per: 'month' },
  rpm: 1e12,
  tpm: 1e15,
  max_concurrent: 1e6,
  max_output_tokens: 4096,
};

function worker(name: string, what: string, file: string, own: Partial<Row> = {}): Row {
  return {
    name,
    what,
    main: new URL(file, import.meta.url),
    treatment: 'frames',
    sections: STREAMING,
    settings: (upstream) => ({ UPSTREAM: upstream }),
    hasKv: false,
    hasLedger: false,
    limits: {},
    path: '/v1/chat/completions',
    modelPrefix: () => '',
    headers: () => ({}),
    alias: {},
    replace: null,
    unknownStreams: [],
    isWeir: false,
    hasWeirFlags: false,
    isPeer: false,
    ...own,
  };
}

function weir(
  name: string,
  what: string,
  own: Partial<Row> = {},
  vars: Readonly<Record<string, string>> = {},
): Row {
  return worker(name, what, '../src/index.ts', {
    settings: (upstream) => ({
      AUTH: 'open',
      ADMIN_TOKEN,
      DEEPSEEK_API_KEY: 'bench',
      DEEPSEEK_BASE_URL: upstream,
      MISTRAL_API_KEY: 'bench',
      MISTRAL_BASE_URL: upstream,
      XEROTIER_API_KEY: 'bench',
      XEROTIER_BASE_URL: upstream,
      ANTHROPIC_API_KEY: 'bench',
      ANTHROPIC_BASE_URL: upstream,
      GEMINI_API_KEY: 'bench',
      GEMINI_BASE_URL: upstream,
      OPENAI_API_KEY: 'bench',
      OPENAI_BASE_URL: upstream,
      PROVIDERS: JSON.stringify({
        converse: { base_url: upstream, like: 'bedrock', api: 'bedrock-converse', api_key: 'OPENAI_API_KEY' },
      }),
      ...vars,
    }),
    hasKv: true,
    modelPrefix: (stream) => (OWN_PROVIDERS.includes(stream) ? `${stream}/` : 'deepseek/'),
    isWeir: true,
    hasWeirFlags: true,
    ...own,
  });
}

function reframe(name: string, stream: StreamName): Row {
  const what = `a plain loop that copies the text of ${name} into chunks, without checks`;
  return worker(`reframe-${name}`, what, './workers/reframe.ts', { sections: ['bulk'], onlyStream: stream });
}

function portkey(provider: string): Row {
  const stand = './workers/portkey-server.ts';
  return worker(
    `portkey-${provider}`,
    `@portkey-ai/gateway of npm, its ${provider} provider, in workerd`,
    './workers/portkey.ts',
    {
      sections: [...STREAMING, 'requests'],
      headers: (upstream) => ({
        authorization: 'Bearer bench',
        'x-portkey-provider': provider,
        'x-portkey-custom-host': upstream,
      }),
      alias: { '@hono/node-server': stand, '@hono/node-ws': stand, ws: stand, ioredis: stand },
      isPeer: true,
    },
  );
}

export const ROWS: readonly Row[] = [
  worker('pass', 'return fetch(upstream)', './workers/pass.ts', {
    treatment: 'bytes',
    sections: [...STREAMING, 'requests', 'prompts'],
  }),
  worker(FLOOR, 'parses both bodies, writes a record to KV, logs a line', './workers/floor.ts', {
    treatment: 'bytes',
    sections: ['requests'],
    hasKv: true,
    modelPrefix: () => UPSTREAM_PREFIX,
  }),
  worker(
    'contract-floor',
    "the floor, and the calls of the runtime that Weir's contract needs: cancellation, bounded reads, headers",
    './workers/contract-floor.ts',
    {
      treatment: 'bytes',
      sections: ['requests'],
      hasKv: true,
      modelPrefix: () => UPSTREAM_PREFIX,
      hasWeirFlags: true,
    },
  ),
  worker(
    'limits-floor',
    "the contract's floor, and two calls to the object of a key: the least that limits add",
    './workers/limits-floor.ts',
    {
      treatment: 'bytes',
      sections: ['requests'],
      hasKv: true,
      hasLedger: true,
      modelPrefix: () => UPSTREAM_PREFIX,
      hasWeirFlags: true,
    },
  ),
  worker('identity', 'a TransformStream in JavaScript, bytes untouched', './workers/identity.ts', {
    treatment: 'bytes',
  }),
  worker(
    'identity-byob',
    'BYOB reader into an IdentityTransformStream, bytes untouched',
    './workers/identity-byob.ts',
    {
      treatment: 'bytes',
    },
  ),
  reframe('claude', 'anthropic'),
  reframe('gemini', 'gemini'),
  weir('weir', 'Weir as it is, AUTH=open', { sections: [...STREAMING, 'requests', 'prompts'] }),
  weir(
    'weir-no-texts',
    'Weir with ERROR_TEXTS=off: the sentence of a refusal is not compared with the prompt',
    { sections: ['prompts'] },
    { ERROR_TEXTS: 'off' },
  ),
  weir('weir-session', 'Weir, whose client has a session: the prompt is hashed', {
    sections: ['prompts'],
    headers: () => ({ 'x-session-id': 'bench' }),
  }),
  weir(
    'weir-once',
    'Weir with RETRIES=0: request bodies are not kept',
    { sections: ['bulk', 'requests'] },
    { RETRIES: '0' },
  ),
  // `textToLearn` then finds no text, so no template is learned.
  weir('weir-slow', 'Weir without its fast path', {
    replace: ['.includes(`\n`)?null:', '.includes(``)?null:'],
  }),
  // Anthropic's stream measures the passthrough.
  weir('weir-messages', 'Weir, called by a client of Messages', {
    treatment: 'messages',
    sections: ['bulk', 'paced'],
    path: '/v1/messages',
  }),
  // The Responses stream measures the passthrough. DeepSeek's stream uses a provider with chat only, because DeepSeek
  // supports both protocols.
  weir('weir-responses', 'Weir, called by a client of Responses', {
    treatment: 'responses',
    sections: ['bulk', 'paced'],
    path: '/v1/responses',
    modelPrefix: (stream) => {
      if (stream === 'responses') return 'openai/';
      return OWN_PROVIDERS.includes(stream) ? `${stream}/` : 'xerotier/';
    },
  }),
  // Gemini's stream measures the passthrough.
  weir('weir-gemini', "Weir, called by a client of Gemini's API", {
    treatment: 'gemini',
    needs: 'src/protocols/gemini/client.ts',
    sections: ['bulk'],
    path: '/v1beta/models/{model}:streamGenerateContent?alt=sse',
  }),
  {
    ...weir(
      'weir-through-responses',
      'Weir, called by a client of chat, at a provider that it calls through Responses',
      {
        sections: ['bulk'],
        modelPrefix: () => 'upstream/',
        onlyStream: 'responses',
      },
    ),
    settings: (upstream) => ({
      AUTH: 'open',
      PROVIDERS: JSON.stringify({ upstream: { base_url: upstream, api: 'responses' } }),
    }),
  },
  weir('weir-keys', 'Weir with AUTH=keys', { sections: ['requests'], hasLedger: true }, { AUTH: 'keys' }),
  weir(
    'weir-limits',
    'Weir with AUTH=keys and a key that has every limit',
    { sections: ['requests'], hasLedger: true, limits: EVERY_LIMIT },
    { AUTH: 'keys' },
  ),
  {
    ...weir('weir-signed', "Weir, whose provider's requests are signed for AWS", {
      sections: ['requests', 'prompts'],
      needs: 'src/credentials/aws.ts',
      modelPrefix: () => 'signed/',
    }),
    settings: (upstream) => ({
      AUTH: 'open',
      BENCH_ID: 'AKIDEXAMPLE',
      BENCH_SECRET: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
      PROVIDERS: JSON.stringify({
        signed: {
          ...{ base_url: upstream, like: 'deepseek' },
          auth: {
            aws: {
              ...{ access_key_id: 'BENCH_ID', secret_access_key: 'BENCH_SECRET' },
              ...{ region: 'us-east-1', service: 'bedrock' },
            },
          },
        },
      }),
    }),
  },
  worker('naive', 'TextDecoderStream, split, JSON, one write per frame', './workers/naive.ts'),
  worker(
    'eventsource-parser',
    'eventsource-parser and JSON in one TransformStream',
    './workers/eventsource-parser.ts',
    { isPeer: true },
  ),
  portkey('deepseek'),
  portkey('openai'),
];

/**
 * The rows of Weir's among `rows`, with the source of another checkout: `base-weir` for `weir`. Rows and streams that an earlier checkout
 * does not have are left out.
 */
export function rowsOfCheckout(directory: string, rows: readonly Row[]): Row[] {
  const has = (file: string) => existsSync(join(directory, file));
  const hasConverse = has('src/protocols/bedrock-converse/upstream-reader.ts');
  return rows
    .filter(({ isWeir, replace, needs }) => isWeir && replace === null && (needs === undefined || has(needs)))
    .map((row) => ({
      ...row,
      ...(hasConverse ? {} : ofOlder(row)),
      name: `base-${row.name}`,
      what: `${row.what}, in ${directory}`,
      main: pathToFileURL(join(directory, 'src/index.ts')),
    }));
}

function ofOlder({ settings }: Row): Pick<Row, 'settings' | 'unknownStreams'> {
  return { settings: (upstream) => withoutConverse(settings(upstream)), unknownStreams: ['converse'] };
}

/** An earlier checkout refuses all of `PROVIDERS` for an entry that it does not know. */
function withoutConverse({ PROVIDERS = '{}', ...settings }: Readonly<Record<string, string>>) {
  const { converse: _, ...providers }: Record<string, unknown> = JSON.parse(PROVIDERS);
  return { ...settings, PROVIDERS: JSON.stringify(providers) };
}

/**
 * The rows with these names, in this order.
 * @param base another checkout of Weir; each of Weir's rows is followed by the one with its source. null: none
 */
export function requestedRows(names: readonly string[], base: string | null): Row[] {
  return names.flatMap((name) => {
    const row = ROWS.find((one) => one.name === name);
    if (row === undefined) throw new Error(`${name} is no row`);
    return base === null ? [row] : [row, ...rowsOfCheckout(base, [row])];
  });
}

/**
 * Rows that parse streams read only OpenAI's chat. Weir and rows that pass bytes through take the others too; the
 * Responses stream needs Weir's passthrough.
 */
export function takes({ treatment, isWeir, onlyStream, unknownStreams }: Row, stream: StreamName): boolean {
  if (unknownStreams.includes(stream)) return false;
  if (onlyStream !== undefined) return stream === onlyStream;
  // A call is written whole, and the one of this stream is larger than an event may be.
  if (treatment === 'gemini' && stream === 'tools') return false;
  if (stream === 'responses') return treatment === 'bytes' || treatment === 'responses';
  return !['anthropic', 'gemini', 'converse'].includes(stream) || treatment === 'bytes' || isWeir;
}

export const BASELINE = 'pass';

export function upstreamUrl(ports: Ports): string {
  return `http://127.0.0.1:${ports.upstream}`;
}
