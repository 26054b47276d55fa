/** Uses the package in a project without types of a runtime. */
import { type Identity, type Price, type UsageRecord, weir } from 'weir-gateway';

const records: UsageRecord[] = [];
const ada: Identity = { id: 'ada', models: ['deepseek/*'] };

const price: Price = {
  provider: 'deepseek',
  models: ['*'],
  since: '2026-11-01',
  currency: 'USD',
  input: 1,
  output: 2,
  peak: { zone: '+08:00', days: [1, 2], hours: [['09:00', '12:00']], input: 2 },
};

export const gateway = weir<{ readonly NAME: string }>({
  basePath: '/ai',
  deepseekApiKey: 'sk-1',
  mistralBaseUrl: 'https://mistral.example/v1',
  prices: [price],
  onRequest: (request, { env }) => (request.url.endsWith(env.NAME) ? ada : null),
  onRecord: (record) => records.push(record),
});

// Secrets named by entries of `providers`.
weir({
  providers: { acme: { base_url: 'https://acme.example/v1', api_key: 'ACME_TOKEN' } },
  secrets: { ACME_TOKEN: 'k' },
  retries: 2,
});

// @ts-expect-error: a misspelt option.
weir({ basepath: '/ai' });
// @ts-expect-error: a price with a misspelt rate.
weir({ prices: [{ ...price, outptu: 2 }] });
// @ts-expect-error: a class of a feature that is not listed.
weir({ features: [] }).objects.LedgerObject;
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
