/** Weir as a host mounts it below `/ai`, with the host's own callers. */
import { weir } from 'weir-gateway';
import { attribution } from 'weir-gateway/attribution';
import { dashboard } from 'weir-gateway/dashboard';
import { durableResponses } from 'weir-gateway/durable-responses';
import { ledger } from 'weir-gateway/ledger';

export interface Env {
  /** Makes the generation of ids throw on every request. */
  readonly BREAK?: string;
  readonly DEADLINE_SECONDS?: string;
}

export const gateway = weir<Env>({
  features: [ledger(), attribution(), durableResponses(), dashboard()],
  basePath: '/ai',
  auth: 'keys',
  aliases: { fast: 'openai/gpt-4o-mini', safe: ['deepseek/deepseek-chat', { model: 'openai/gpt-4o-mini' }] },
  defaultProvider: 'openai',
  retries: 0,
  responses: 'durable',
  corsOrigins: ['https://app.example.com'],
  onRequest: async (request, { env, requestId }) => {
    if (env.BREAK !== undefined) crypto.randomUUID = () => fail(requestId);
    const user = request.headers.get('x-user');
    if (user === 'blocked') return Response.redirect('https://app.example.com/sign-in', 302);
    if (user === 'broken') return fail('onRequest');
    if (user === 'reader') await request.text();
    if (user === 'guarded' && (await request.clone().text()).includes('secret'))
      return Response.json({ error: { message: 'No secrets here' } }, { status: 451 });
    return user === null ? undefined : { id: user, models: ['openai/*', 'deepseek/*'] };
  },
  onRecord: (record, { requestId }) => {
    // biome-ignore lint/suspicious/noConsole: a Worker's log is its console, and a test reads this line.
    console.log(JSON.stringify({ event: 'host_record', requestId, record }));
    // Changes by the host don't affect the stored record.
    const isCareless = record.key_id === 'host_careless';
    Object.assign(record, { key_id: 'stolen' });
    if (isCareless) return fail('onRecord');
    return undefined;
  },
});

function fail(what: string): never {
  throw new Error(`broken on purpose: ${what}`);
}
