/**
 * Finds out what a real provider accepts, rejects and streams today, and compares it with Weir's table: node
 * tools/probe.ts PROVIDER [--model NAME] [--base-url URL] [--key KEY] [--only GLOB] [--json]. It makes about a hundred
 * short requests, which cost money. `--key ''` is for a server without keys. Exits with 1 if Weir is wrong, and with 2
 * if an argument is missing or the provider rejects the key.
 */
import { parseArgs } from 'node:util';
import { configuredProvider } from '../src/providers/compatible.ts';
import { PROFILES, PROVIDERS } from '../src/providers/index.ts';
import type { Provider } from '../src/providers/provider.ts';
import { matchesGlob } from '../src/shared/glob.ts';
import { DEFAULTS } from './probe/models.ts';
import { bodiesFor, countRequests, planOf, type Target } from './probe/plan.ts';
import { exitCodeOf, linesOf, reportOf } from './probe/report.ts';
import { probe } from './probe/runner.ts';

const REQUEST_TIMEOUT_MS = 60_000;
const USAGE =
  'npm run probe -- <provider> [--model NAME] [--base-url URL] [--key KEY] [--only GLOB] [--json]';

/** A missing or invalid argument or setting. */
class UsageError extends Error {}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        model: { type: 'string' },
        'base-url': { type: 'string' },
        key: { type: 'string' },
        only: { type: 'string', default: '*' },
        json: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
  }
}

function providerOf(id: string): Provider {
  const known = PROVIDERS.find((provider) => provider.id === id);
  // The probe compares request rules with the provider. Providers with their own API have none.
  if (known?.endpoints.chat?.request.kind === 'chat') return known;
  const profile = PROFILES.find((candidate) => candidate.id === id);
  const ids = new Set([...PROVIDERS, ...PROFILES].map((candidate) => candidate.id));
  if (profile === undefined) {
    throw new UsageError(`${USAGE}\nThe provider must be one of ${[...ids].join(', ')}.`);
  }
  const name = id.toUpperCase();
  return {
    ...configuredProvider(id, profile, `${name}_API_KEY`),
    baseUrlSettings: [`${name}_BASE_URL`],
  };
}

/** The first of these settings that is set. */
function setting(names: readonly string[]): string | undefined {
  return names.map((name) => process.env[name]).find((value) => value !== undefined && value !== '');
}

function targetOf({ values, positionals }: ReturnType<typeof readArguments>): Target {
  const provider = providerOf(positionals[0] ?? '');
  const { id, apiKeySettings, baseUrlSettings, defaultBaseUrl } = provider;
  const defaults = DEFAULTS[id] ?? {};
  const baseUrl = values['base-url'] ?? setting(baseUrlSettings) ?? defaultBaseUrl ?? defaults.baseUrl;
  const model = values.model ?? defaults.model;
  const key = values.key ?? setting(apiKeySettings);
  const missing = [
    ...(key === undefined ? [`${apiKeySettings.join(' or ')} in the environment, or --key KEY`] : []),
    ...(baseUrl === undefined ? [`${baseUrlSettings[0]} in the environment, or --base-url URL`] : []),
    ...(model === undefined ? ['--model NAME'] : []),
  ];
  if (key === undefined || baseUrl === undefined || model === undefined) {
    throw new UsageError(`To probe ${id}, set ${missing.join('; ')}.`);
  }
  // Node's error about such a header contains it.
  if (!/^[!-~]*$/.test(key)) throw new UsageError(`The key of ${id} is not one word of printable ASCII.`);
  const url = URL.parse(baseUrl);
  // What is printed is this URL: one with a password in it would show it.
  if (url === null || url.username !== '' || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`The base URL of ${id} is no http(s) URL without credentials.`);
  }
  const fimModel = defaults.fimModel ?? null;
  return {
    provider,
    baseUrl: baseUrl.replace(/\/+$/, ''),
    key,
    model,
    fimModel,
    timeoutMs: REQUEST_TIMEOUT_MS,
  };
}

async function run(): Promise<number> {
  const parsed = readArguments();
  const target = targetOf(parsed);
  const { only, json } = parsed.values;
  const { provider, model, baseUrl, key } = target;
  const hideKey = (text: string) => (key === '' ? text : text.replaceAll(key, '[key]'));
  const bodies = bodiesFor(provider.id).filter(({ name }) => matchesGlob(only, name));
  const plan = planOf(target, bodies);
  if (plan.length === 0) throw new UsageError(`No body's name matches ${only}.`);
  // Standard output is for the result alone, so that it can be piped.
  process.stderr.write(
    `${provider.name}, ${model}, ${hideKey(baseUrl)}: ${plan.length} bodies, ${countRequests(plan)} requests\n`,
  );
  let done = 0;
  const found = await probe(target, plan, ({ name }) => {
    done += 1;
    if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${done}/${plan.length} ${name}`);
  });
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K');
  const report = reportOf(target, plan, found);
  const lines = json ? [JSON.stringify(report, null, 2)] : linesOf(report);
  process.stdout.write(`${hideKey(lines.join('\n'))}\n`);
  return exitCodeOf(report);
}

try {
  process.exitCode = await run();
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 2;
}
