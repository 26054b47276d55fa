/** Creates the demo's keys, and two weeks of sample records for three of them. Their names say that the records are made up (D8). */
import { type DemoKey, demoRecords, demoSession, fill } from './demo-records.ts';
import { decodeObject, type JsonObject, textOf } from './json.ts';

const RECORDS = 420;

export async function makeKey(url: string, adminToken: string, body: JsonObject) {
  const headers = { authorization: `Bearer ${adminToken}` };
  const response = await fetch(`${url}/admin/keys`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`POST /admin/keys returned ${response.status} ${text}`);
  const made = decodeObject(text);
  return { id: textOf(made?.id), key: textOf(made?.key) };
}

/** @returns the key that the demo's own requests use */
export async function fillDemo(url: string, adminToken: string): Promise<string> {
  const make = (body: JsonObject) => makeKey(url, adminToken, body);
  const web = await make({ name: 'web app (made-up records)', budget: { USD: 0.2, per: 'month' }, rpm: 600 });
  const agents = await make({ name: 'agents (made-up records)', max_concurrent: 20 });
  const evals = await make({ name: 'evals (made-up records)', models: ['deepseek/*', 'mistral/*'] });
  const now = Date.now();
  const records = demoRecords(RECORDS, demoKeys(web.id, agents.id, evals.id), now);
  await fill(url, [...records, ...demoSession(agents.id, now)]);
  await sendRefused(url, evals.key);
  return (await make({ name: 'this demo' })).key;
}

/** What the keys of the demo and of the page's tests send: users of a web app, developers with an agent, and a nightly job. */
export function demoKeys(web: string, agents: string, evals: string): DemoKey[] {
  return [
    {
      id: web,
      weight: 5,
      promptTokens: 2000,
      completionTokens: 400,
      users: ['u-1841', 'u-2207', 'u-3116', 'u-3120', 'u-4096', 'u-5550'],
      app: 'shop.example.com',
      teams: ['shop', 'support'],
    },
    {
      id: agents,
      weight: 3,
      promptTokens: 12_000,
      completionTokens: 1500,
      users: ['ada@example.com', 'grace@example.com', 'linus@example.com'],
      app: 'codex_exec',
      teams: ['search', 'platform'],
    },
    { id: evals, weight: 2, promptTokens: 900, completionTokens: 200, app: 'evals' },
  ];
}

/** Requests that the gateway refuses: a model that the key may not use, and an unknown key. */
export async function sendRefused(url: string, key: string): Promise<void> {
  for (const token of [key, key, `weir_${'0'.repeat(64)}`]) {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'openai/gpt-4o-mini', messages: [{ role: 'user', content: 'Hello' }] }),
    });
    await response.text();
    if (response.status < 400) throw new Error(`A request that should be refused answers ${response.status}`);
  }
}
