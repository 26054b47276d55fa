/** Uses the package in a project without types of a runtime. */
import { type Identity, type UsageRecord, weir } from 'weir-gateway';

const records: UsageRecord[] = [];
const ada: Identity = { id: 'ada', models: ['deepseek/*'] };

export const gateway = weir<{ readonly NAME: string }>({
  basePath: '/ai',
  deepseekApiKey: 'sk-1',
  mistralBaseUrl: 'https://mistral.example/v1',
  prices: [
    { provider: 'deepseek', models: ['*'], since: '2026-11-01', currency: 'USD', input: 1, output: 2 },
  ],
  onRequest: (request, { env }) => (request.url.endsWith(env.NAME) ? ada : null),
  onRecord: (record) => records.push(record),
});

// Secrets named by entries of `providers`.
weir({
  providers: { acme: { base_url: 'https://acme.example/v1', api_key: 'ACME_TOKEN' } },
  secrets: { ACME_TOKEN: 'k' },
  recordDays: 60,
});

// @ts-expect-error: a misspelt option.
weir({ basepath: '/ai' });
// @ts-expect-error: a misspelt provider's.
weir({ depseekApiKey: 'sk-1' });
// @ts-expect-error: an identity without an id.
weir({ onRequest: () => ({ models: [] }) });

export const answered: Promise<number> = gateway
  .fetch(
    { method: 'GET', url: 'https://a.example/ai', clone: fail, text: fail },
    { NAME: 'a' },
    { waitUntil: fail },
  )
  .then((response) => response.status);

function fail(): never {
  throw new Error('not called');
}
