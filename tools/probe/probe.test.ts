/** Tests the probe: each verdict, the errors that stop it, its waits, and its command line. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { createSimulator } from '../simulator/server.ts';
import type { ProbeBody } from './bodies.ts';
import { isLimitedTo } from './effects.ts';
import { body, KEY, refusing, send, serve } from './fake-provider.ts';
import { countRequests, planOf, type Target } from './plan.ts';
import { exitCodeOf, linesOf, reportOf } from './report.ts';
import { type ProbeRun, probe, type Result } from './runner.ts';

function run(target: Target, ...bodies: readonly ProbeBody[]): Promise<ProbeRun> {
  return probe(target, planOf(target, bodies));
}

async function resultOf(target: Target, asked: ProbeBody): Promise<Result> {
  const { results } = await run(target, asked);
  const [result] = results;
  if (result === undefined) throw new Error(`${asked.name} has no result`);
  return result;
}

describe('a verdict', () => {
  test('taken: a body that Weir sends unchanged needs one request', async () => {
    const { target, received } = await serve(refusing());
    expect(await resultOf(target, body('text'))).toMatchObject({ verdict: 'taken', note: '' });
    expect(received).toHaveLength(1);
  });

  test('mended: a body that is rejected unchanged and accepted after translation', async () => {
    const { target, received } = await serve(refusing('user'));
    expect(await resultOf(target, body('field/user', { user: 'ada' }))).toMatchObject({
      verdict: 'mended',
      note: "400 Unknown parameter: 'user'.; Weir drops user",
      rows: ['fields.user'],
    });
    expect(received.map((asked) => 'user' in asked)).toEqual([true, false]);
  });

  test('mended: a field that is ignored unchanged and has its effect after translation', async () => {
    const { target } = await serve((asked, response) => {
      const tokens = typeof asked.max_tokens === 'number' ? asked.max_tokens : 90;
      const finish_reason = tokens < 90 ? 'length' : 'stop';
      send(response, 200, { choices: [{ finish_reason }], usage: { completion_tokens: tokens } });
    });
    const limited = body('field/max_completion_tokens', { max_completion_tokens: 16 }, isLimitedTo(16));
    expect(await resultOf(target, limited)).toMatchObject({
      verdict: 'mended',
      note: 'taken without effect; Weir drops max_completion_tokens, adds max_tokens',
    });
  });

  test('refused: a body that is rejected either way', async () => {
    const { target } = await serve(refusing('logit_bias'));
    expect(await resultOf(target, body('field/logit_bias', { logit_bias: {} }))).toMatchObject({
      verdict: 'refused',
      note: "400 Unknown parameter: 'logit_bias'.",
    });
  });

  test('refused: a 200 that contains an error', async () => {
    const { target } = await serve((_, response) => send(response, 200, { error: { message: 'No' } }));
    expect(await resultOf(target, body('field/n'))).toMatchObject({ verdict: 'refused', note: '200 No' });
  });

  test('stale: a field that the provider accepts and Weir drops', async () => {
    const { target } = await serve(refusing());
    expect(await resultOf(target, body('field/store', { store: true }))).toMatchObject({
      verdict: 'stale',
      note: 'Weir drops store',
      rows: ['fields.store'],
    });
  });

  test('stale: a role that the provider accepts and Weir renames', async () => {
    const { target } = await serve(refusing());
    const messages = [{ role: 'developer', content: 'Go' }];
    expect(await resultOf(target, body('message/developer', { messages }))).toMatchObject({
      verdict: 'stale',
      note: 'Weir changes messages[].role',
      rows: ['messages.roles'],
    });
  });

  test('broken: a body that is accepted unchanged and rejected after translation', async () => {
    const { target } = await serve(refusing('random_seed'));
    expect(await resultOf(target, body('field/seed', { seed: 7 }))).toMatchObject({
      verdict: 'broken',
      note: "400 Unknown parameter: 'random_seed'.; Weir drops seed, adds random_seed",
      rows: ['fields.seed'],
    });
  });

  test('taken: nulls, the same reasoning under another name, and fields that the table declares as ignored', async () => {
    const { target } = await serve(refusing());
    const messages = [{ role: 'assistant', content: 'Hello', reasoning: 'Hm' }];
    const { results } = await run(
      target,
      body('field/null', { stop: null }),
      body('message/reasoning', { messages }),
      body('field/presence_penalty', { presence_penalty: 0.5 }),
    );
    expect(results.map(({ verdict, note }) => [verdict, note])).toEqual([
      ['taken', 'Weir drops stop'],
      ['taken', 'Weir drops messages[].reasoning, adds messages[].reasoning_content'],
      ['taken', 'its effect is unknown; Weir rejects presence_penalty as ignored'],
    ]);
  });
});

test('a rejected key stops the probe and is not in its output', async () => {
  let requestCount = 0;
  const { target } = await serve((_, response) => {
    requestCount += 1;
    if (requestCount === 1) return send(response, 200, { choices: [] });
    send(response, 401, { error: { message: `Incorrect API key provided: ${KEY}` } });
  });
  const bodies = [body('text'), body('field/a', { a: 1 }), body('field/b', { b: 1 })];
  const found = await run(target, ...bodies);
  expect(requestCount).toBe(2);
  expect(found.results.map(({ name }) => name)).toEqual(['text']);
  expect(found.stopped).toMatch(
    /^compatible rejected the key, or its balance is exhausted: 401 Incorrect API key/,
  );
  const report = reportOf(target, planOf(target, bodies), found);
  expect(linesOf(report).join('\n')).not.toContain(KEY);
  expect(exitCodeOf(report)).toBe(2);
});

test('a rejected plain request stops the probe: no other result would mean anything', async () => {
  const { target, received } = await serve(refusing('model'));
  const found = await run(target, body('text'), body('field/a', { a: 1 }));
  expect(found.stopped).toBe("compatible rejects a plain request: 400 Unknown parameter: 'model'.");
  expect(received).toHaveLength(1);
});

test('a 429 is retried once, after the wait that the provider requests', async () => {
  let requestCount = 0;
  const { target } = await serve((given, response) => {
    requestCount += 1;
    if (requestCount === 1)
      return send(response, 429, { error: { message: 'Slow down' } }, { 'retry-after': '1' });
    refusing()(given, response);
  });
  const before = performance.now();
  expect(await resultOf(target, body('text'))).toMatchObject({ verdict: 'taken' });
  expect(performance.now() - before).toBeGreaterThan(900);
  expect(requestCount).toBe(2);
});

test('a 429 with a longer wait is not retried', async () => {
  const { target, received } = await serve((_, response) =>
    send(response, 429, { error: { message: 'Slow down' } }, { 'retry-after': '60' }),
  );
  expect(await resultOf(target, body('field/a', { a: 1 }))).toMatchObject({
    verdict: 'unclear',
    note: '429 Slow down (retry after 60 s)',
  });
  expect(received).toHaveLength(1);
});

test('a request to a server that hangs ends after the time limit', async () => {
  const { target } = await serve((_, response) => void response.writeHead(200).write(' '));
  const hurried = { ...target, timeoutMs: 100 };
  expect(await resultOf(hurried, body('field/a', { a: 1 }))).toMatchObject({
    verdict: 'unclear',
    note: 'no complete response within 0.1 s',
  });
});

test("unknown keys of a stream are reported once, and Weir's output keeps the contract", async () => {
  const chunk = { id: '1', object: 'chat.completion.chunk', created: 1_790_000_000, model: 'small' };
  const delta = { role: 'assistant', content: 'Hi', mood: { colour: 'blue' } };
  const events = [
    { ...chunk, choices: [{ index: 0, delta, finish_reason: null }] },
    { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], tier: 'gold' },
  ];
  const text = [...events.map((event) => JSON.stringify(event)), '[DONE]'].map((data) => `data: ${data}\n\n`);
  const { target } = await serve((_, response) =>
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text.join('')),
  );
  const streams = [body('stream', { stream: true }), body('field/top_k', { stream: true, top_k: 1 })];
  const found = await run(target, ...streams);
  expect(found.results.map(({ verdict, newKeys, breaks }) => ({ verdict, newKeys, breaks }))).toEqual([
    { verdict: 'taken', newKeys: ['choices[].delta.mood', 'tier'], breaks: [] },
    { verdict: 'taken', newKeys: [], breaks: [] },
  ]);
});

test('the report counts the verdicts and names the rows to check', async () => {
  const { target } = await serve(refusing('random_seed', 'metadata', 'top_k'));
  const bodies = [
    body('text'),
    body('field/store', { store: true }),
    body('field/seed', { seed: 7 }),
    body('field/metadata', { metadata: {} }),
    body('field/top_k', { top_k: 3 }),
  ];
  const plan = planOf(target, bodies);
  const report = reportOf(target, plan, await probe(target, plan));
  expect(countRequests(plan)).toBe(7);
  expect(report.counts).toMatchObject({ taken: 1, stale: 1, broken: 1, refused: 2 });
  expect(report.to_do).toEqual([
    expect.stringMatching(
      /^field\/store: Weir drops store, but the provider accepts it: is `fields.store` in /,
    ),
    expect.stringMatching(/^field\/seed: Weir breaks the request .*: fix `fields.seed` in /),
    expect.stringMatching(/^field\/metadata: refused: .* needs `fields.metadata: REFUSED`$/),
    // Z5: what the gateway would learn from the refusal.
    expect.stringMatching(/^field\/top_k: learned: .* needs `fields: { top_k: REFUSED }`$/),
  ]);
  expect(exitCodeOf(report)).toBe(1);
});

describe('the command line', () => {
  const COMMAND = fileURLToPath(new URL('../probe.ts', import.meta.url).href);
  /** The environment without provider keys. */
  const command = (...args: readonly string[]) =>
    promisify(execFile)(process.execPath, [COMMAND, ...args], { env: {} }).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      (failed: { code: number; stdout: string; stderr: string }) => failed,
    );

  test('names what is missing', async () => {
    expect(await command('tolerant')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/TOLERANT_API_KEY .*--base-url URL; --model NAME/),
    });
    expect(await command('nobody')).toMatchObject({ code: 2, stderr: expect.stringContaining('deepseek') });
  });

  test('prints a table of what the provider accepts', async () => {
    await using simulator = await createSimulator();
    const baseUrl = `${simulator.url}/deepseek`;
    const args = ['--base-url', baseUrl, '--key', 'sim-test', '--model', 'deepseek-chat'];
    const { code, stdout } = await command('deepseek', ...args, '--only', 'field/*');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ +field\/max_tokens +taken/m);
    expect(stdout).not.toContain('sim-test');
  });
});
