/** The gateways that the suite starts itself, for its own table: Weir, Portkey's gateway from npm, and a bare pass-through Worker. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { build } from 'esbuild';
import { installPeers } from '../../bench/build.ts';
import { workerdIds } from '../../test/e2e/processes.ts';
import { startWorkers, type WorkerOptions } from '../../test/e2e/workers.ts';
import { decodeObject, numberOf, objectOf, textOf } from '../simulator/json.ts';
import type { Gateway, GatewayRecord } from './play.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const ADMIN_TOKEN = 'conformance-admin-token';
const KEY = 'conformance';
/** A record is written after the response has ended. */
const RECORD_MS = 30_000;
const RECORD_EVERY_MS = 50;

export type Started = Gateway & AsyncDisposable;

/** @param upstream the URL of the suite's upstreams */
export const KNOWN: Readonly<Record<string, (upstream: string) => Promise<Started>>> = {
  weir: startWeir,
  portkey: startPortkey,
  'pass-through': startPassThrough,
};

async function startWeir(upstream: string): Promise<Started> {
  const provider = (more: object) => ({ api_key: 'CONFORMANCE_KEY', ...more });
  const providers = {
    'with-chat': provider({ base_url: `${upstream}/v1` }),
    'with-messages': provider({ base_url: upstream, like: 'anthropic' }),
    'with-responses': provider({
      base_url: `${upstream}/v1`,
      like: 'openai',
      api: 'responses',
      responses: true,
    }),
    'with-gemini': provider({ base_url: upstream, like: 'gemini-native' }),
  };
  const vars = {
    AUTH: 'open',
    ADMIN_TOKEN,
    RETRIES: '0',
    CONFORMANCE_KEY: 'sk-conformance',
    PROVIDERS: JSON.stringify(providers),
  };
  const runtime = await startWorkers({ workers: [{ vars }] });
  const url = `${runtime.url}/v1`;
  return {
    name: 'Weir',
    version: revision(),
    url,
    key: KEY,
    upstreams: {
      chat: { model: 'with-chat/conformance-1' },
      messages: { model: 'with-messages/conformance-1' },
      responses: { model: 'with-responses/conformance-1' },
      gemini: { model: 'with-gemini/conformance-1' },
    },
    processes: workerdIds,
    record: recordsOf(url, ADMIN_TOKEN),
    providerOf: (protocol) => `with-${protocol}`,
    [Symbol.asyncDispose]: () => runtime[Symbol.asyncDispose](),
  };
}

/** Reads Weir's records. @param key a gateway key, or the admin token */
export function recordsOf(url: string, key: string): (headers: Headers) => Promise<GatewayRecord | null> {
  return async (headers) => {
    const id = headers.get('x-request-id');
    for (let waited = 0; id !== null && waited < RECORD_MS; waited += RECORD_EVERY_MS) {
      const response = await fetch(`${url}/usage/records/${id}`, {
        headers: { authorization: `Bearer ${key}` },
      });
      const record = decodeObject(await response.text());
      if (response.ok && record !== undefined) {
        const { prompt_tokens, completion_tokens, estimated } = record;
        return {
          prompt: numberOf(prompt_tokens) ?? null,
          completion: numberOf(completion_tokens) ?? null,
          isEstimated: estimated === true,
        };
      }
      await setTimeout(RECORD_EVERY_MS);
    }
    return null;
  };
}

async function startPassThrough(upstream: string): Promise<Started> {
  const main = join(import.meta.dirname, 'workers', 'pass-through.ts');
  const any = { model: 'conformance-1' };
  return startBare(
    { main, vars: { UPSTREAM: upstream } },
    {
      name: 'Pass-through',
      version: 'a Worker of ten lines',
      key: KEY,
      upstreams: { chat: any, messages: any, responses: any, gemini: any },
    },
  );
}

/** In workerd, as its authors deploy it, because its Node server ends each stream with an exception. */
async function startPortkey(upstream: string): Promise<Started> {
  const problem = await installPeers();
  if (problem !== null) throw new Error(problem);
  const bench = join(ROOT, 'bench');
  const directory = await mkdtemp(join(tmpdir(), 'conformance-portkey-'));
  const stand = join(bench, 'workers', 'portkey-server.ts');
  const main = join(directory, 'portkey.js');
  await build({
    entryPoints: [join(bench, 'workers', 'portkey.ts')],
    outfile: main,
    bundle: true,
    format: 'esm',
    target: 'es2024',
    conditions: ['workerd', 'worker', 'browser'],
    platform: 'browser',
    define: { 'import.meta.url': '"file:///index.js"', 'process.env.NODE_ENV': '"production"' },
    external: ['cloudflare:*', 'node:*'],
    alias: Object.fromEntries(
      ['@hono/node-server', '@hono/node-ws', 'ws', 'ioredis'].map((name) => [name, stand]),
    ),
    plugins: [
      {
        // Node's modules under their short names.
        name: 'node-modules',
        setup: ({ onResolve }) => {
          const filter =
            /^(?:assert|async_hooks|buffer|child_process|crypto|dns|events|fs|http|https|http2|module|net|os|path|perf_hooks|process|querystring|readline|stream|string_decoder|timers|tls|tty|url|util|worker_threads|zlib)(?:\/[a-z]+)?$/;
          onResolve({ filter }, ({ path }) => ({ path: `node:${path}`, external: true }));
        },
      },
    ],
    logLevel: 'silent',
  });
  const provider = (name: string, host: string) => ({
    model: 'conformance-1',
    headers: { 'x-portkey-provider': name, 'x-portkey-custom-host': upstream + host },
  });
  const openai = provider('openai', '/v1');
  const started = await startBare(
    { main, compatibilityFlags: ['nodejs_compat'] },
    {
      name: 'Portkey',
      version: `@portkey-ai/gateway ${versionOf(join(bench, 'node_modules/@portkey-ai/gateway'))}`,
      key: KEY,
      upstreams: {
        chat: openai,
        responses: openai,
        messages: provider('anthropic', '/v1'),
        gemini: provider('google', '/v1beta'),
      },
    },
  );
  return {
    ...started,
    [Symbol.asyncDispose]: async () => {
      await started[Symbol.asyncDispose]();
      await rm(directory, { recursive: true });
    },
  };
}

async function startBare(worker: WorkerOptions, gateway: Omit<Gateway, 'url'>): Promise<Started> {
  const runtime = await startWorkers({ workers: [worker] });
  return {
    ...gateway,
    url: `${runtime.url}/v1`,
    processes: workerdIds,
    [Symbol.asyncDispose]: () => runtime[Symbol.asyncDispose](),
  };
}

function versionOf(directory: string): string {
  return textOf(objectOf(decodeObject(readFileSync(join(directory, 'package.json'), 'utf8'))).version);
}

function revision(): string {
  const version = versionOf(ROOT);
  try {
    return `${version} (${execFileSync('git', ['describe', '--always', '--dirty'], { cwd: ROOT }).toString().trim()})`;
  } catch {
    return version;
  }
}
