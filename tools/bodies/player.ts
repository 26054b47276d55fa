/**
 * Plays cases through the gateway of one checkout, in this process, and writes what its upstreams received: node tools/bodies/player.ts
 * <checkout> <cases> <output>. All that is read of the checkout is its gateway for tests, so that it may be an older one.
 */
import { createWriteStream, readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { LimitedGateway } from '../../test/gateway/limited-gateway.ts';
import { decodeObject } from '../simulator/json.ts';
import type { BodiesCase } from './cases.ts';

const [checkout = '', casesPath = '', outputPath = ''] = process.argv.slice(2);

// Globals of workerd that Node lacks.
const WORKERS = 'data:text/javascript,export const tracing = undefined; export class DurableObject {}';
/** The built page, which a checkout may lack. */
const PAGE =
  'data:text/javascript,export const DOCUMENT = "", SCRIPT_HASH = "", STYLE_HASH = "", DOCS_STYLE_HASH = "";';
registerHooks({
  resolve: (specifier, context, next) => {
    if (specifier.startsWith('./built/')) return next(PAGE, context);
    return next(specifier === 'cloudflare:workers' ? WORKERS : specifier, context);
  },
});
Object.assign(globalThis, { IdentityTransformStream: TransformStream, FixedLengthStream: TransformStream });

const importOf = (path: string) => import(pathToFileURL(join(checkout, path)).href);
const gateways: { readonly LimitedGateway: typeof LimitedGateway } = await importOf(
  'test/gateway/limited-gateway.ts',
);
const { PROFILES, PROVIDERS, PROVIDER_SETTINGS }: typeof import('../../src/providers/index.ts') =
  await importOf('src/providers/index.ts');

const builtIn = new Set(PROVIDERS.map(({ id }) => id));
const entries = PROFILES.filter(({ id }) => !builtIn.has(id)).map(({ id }) => [
  id,
  { base_url: `https://${id}.example/v1`, api_key: 'OPENAI_API_KEY', like: id },
]);
/** What providers need besides a key, of which an older checkout knows some. */
const NEEDED: Readonly<Record<string, string>> = {
  OPENTOKEN_BASE_URL: 'https://host.example/v1',
  XEROTIER_BASE_URL: 'https://host.example/v1',
  AZURE_RESOURCE: 'weir',
  AWS_BEARER_TOKEN_BEDROCK: 'k',
  AWS_REGION: 'us-east-1',
};
const settingNames: readonly string[] = PROVIDER_SETTINGS;
const needed = Object.entries(NEEDED).filter(([name]) => settingNames.includes(name));
const SETTINGS = {
  ...Object.fromEntries(settingNames.filter((name) => name.endsWith('_KEY')).map((name) => [name, 'k'])),
  ...Object.fromEntries(needed),
  PROVIDERS: JSON.stringify(Object.fromEntries(entries)),
  RETRIES: '0',
  HEARTBEAT_SECONDS: '0',
};

/** No failure of the provider, so that its circuit stays closed. */
const NO = { status: 400, text: 'The body is compared' };
/** A success in every protocol, without a stream. */
const ANSWER = JSON.stringify({
  ...{ id: 'a', object: 'response', created: 1, created_at: 1, model: 'm', status: 'completed' },
  ...{ type: 'message', role: 'assistant', content: [{ type: 'text', text: 'Hi' }], stop_reason: 'end_turn' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  output: [
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hi', annotations: [] }] },
  ],
  candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }],
  usage: { prompt_tokens: 7, completion_tokens: 3, input_tokens: 7, output_tokens: 3, total_tokens: 10 },
});

const cases: readonly BodiesCase[] = JSON.parse(readFileSync(casesPath, 'utf8'));
const output = createWriteStream(outputPath);

interface SentBody {
  readonly url: string;
  readonly body: string;
  readonly betas: string | null;
}

/** A gateway of its own for each request with refusals: what was learned would change others. */
function gatewayFor(refusals: BodiesCase['refusals'], sent: SentBody[]): LimitedGateway {
  let calls = 0;
  return new gateways.LimitedGateway(SETTINGS, {
    fetch: async (url, init) => {
      const betas = new Headers(init?.headers).get('anthropic-beta');
      sent.push({ url: String(url), body: String(init?.body), betas });
      const refusal = refusals.length === 0 ? NO : refusals[calls++];
      const headers = { 'content-type': 'application/json' };
      if (refusal === undefined) return new Response(ANSWER, { headers });
      const { status, text } = refusal;
      const body = text.startsWith('{') ? text : JSON.stringify({ error: { message: text } });
      return new Response(body, { status, headers });
    },
  });
}

const shared: { readonly gateway: LimitedGateway; readonly sent: SentBody[] } = (() => {
  const sent: SentBody[] = [];
  return { sent, gateway: gatewayFor([], sent) };
})();

async function play({ path, headers, body, refusals, maxOutput }: BodiesCase): Promise<unknown> {
  const own = refusals.length === 0 && maxOutput === null ? shared : null;
  const sent: SentBody[] = own?.sent ?? [];
  const gateway = own?.gateway ?? gatewayFor(refusals, sent);
  const token = await tokenOf(gateway, maxOutput);
  sent.length = 0;
  // After a refusal, the next request begins with what was learned.
  const times = refusals.length === 0 ? 1 : 2;
  let response = await gateway.post(path, token, body, { headers });
  let text = await response.text();
  for (let i = 1; i < times; i++) {
    await gateway.idle();
    response = await gateway.post(path, token, body, { headers });
    text = await response.text();
  }
  await gateway.idle();
  const { error } = decodeObject(text) ?? {};
  const reported = (name: string) => response.headers.get(`x-weir-${name}`);
  return {
    sent,
    status: response.status,
    dropped: reported('dropped'),
    changed: reported('changed'),
    api: reported('api'),
    error: error ?? null,
  };
}

const tokens = new WeakMap<LimitedGateway, string>();

async function tokenOf(gateway: LimitedGateway, maxOutput: number | null): Promise<string> {
  const known = tokens.get(gateway);
  if (known !== undefined) return known;
  const token = await gateway.key(maxOutput === null ? {} : { max_output_tokens: maxOutput });
  tokens.set(gateway, token);
  return token;
}

// The timers of the gateway do not keep the process.
const alive = setInterval(() => {}, 1000);
for (const one of cases) {
  const result = await play(one).catch((error: unknown) => ({ thrown: String(error) }));
  output.write(`${JSON.stringify(result)}\n`);
}
output.end();
clearInterval(alive);
