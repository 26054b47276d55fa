/** Tests the live view in Chromium: two streams side by side, their parts, errors, and the stop button (D6, D9). */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeObject } from '../../tools/simulator/json.ts';
import { AccessTeam } from '../attribution/access-team.ts';
import { ADMIN_TOKEN } from '../e2e/gateway.ts';
import { overflows, tabTo, violationsOf } from './axe.ts';
import { chooseAction, hasChromium, type Look, launch, open, signIn } from './browser.ts';
import { ADMIN, type Filled, startFilled } from './filled.ts';

const run = promisify(execFile);
const FLASH = 'deepseek/deepseek-flash';
const SMALL = 'mistral/mistral-small-latest';

describe.runIf(hasChromium)('the live view', () => {
  let browser: Browser;
  let filled: Filled;

  beforeAll(async () => {
    [browser, filled] = await Promise.all([
      launch(), // A client that has left is noticed at the next heartbeat.
      startFilled({ pace: 15, vars: { HEARTBEAT_SECONDS: '1' } }),
    ]);
  });
  afterAll(async () => {
    await browser.close();
    await filled[Symbol.asyncDispose]();
  });

  async function ask(a: string, b = '', look: Look = {}, token = ADMIN_TOKEN) {
    const watched = await open(browser, filled.page, look);
    await signIn(watched.page, token);
    await watched.page.goto(`${filled.page}#/live?${new URLSearchParams({ a, b })}`);
    return watched;
  }
  const choose = (page: Page, protocol: string) =>
    page.getByLabel('Protocol of the client').selectOption(protocol.toLowerCase());
  const send = (page: Page) => page.getByRole('button', { name: 'Send' }).click();
  const streamView = (page: Page, model: string) => page.getByRole('region', { name: model, exact: true });

  test.each<Look>([
    { theme: 'light', width: 1280 },
    { theme: 'dark', width: 360 },
  ])(
    'D6 D9 two models side by side ($theme, $width): separate text and reasoning, every frame, usage and cost',
    async (look) => {
      const { page, context, complaints } = await ask(FLASH, SMALL, look);
      await send(page);
      for (const model of [FLASH, SMALL])
        await streamView(page, model).getByText('Finished (stop)').waitFor();
      const flash = streamView(page, FLASH);
      expect(await flash.locator('.part.reasoning p').innerText()).toBe(
        'Gates first, then water; count each lock once.',
      );
      expect(await flash.locator('.part.text p').innerText()).toBe(
        'Open the lower gate last: the chamber empties, the boat leaves.',
      );
      expect(await streamView(page, SMALL).locator('.part.text p').innerText()).toMatch(/barge/);
      const frames = await flash.locator('.frame').allInnerTexts();
      expect(frames.at(-1)).toContain('[DONE]');
      expect(frames.at(-2)).toContain('"usage"');
      expect(await flash.locator('summary').innerText()).toMatch(
        new RegExp(`^${frames.length} frames, [\\d,]+ bytes$`),
      );
      expect(await flash.locator('.figures').innerText()).toMatch(
        /Tokens out\s+19\s+8 reasoning\s+Cost\s+\$0\.0000\d\d/,
      );
      expect(await flash.locator('.strip path').count()).toBeGreaterThan(2);
      expect(await violationsOf(page)).toEqual([]);
      expect(await overflows(page)).toBe(false);
      expect(complaints).toEqual([]);
      await context.close();
    },
  );

  test('D6 a frame expands to its JSON, and a link leads to the record of the request', async () => {
    const { page, context } = await ask(FLASH);
    await send(page);
    await streamView(page, FLASH).getByText('Finished (stop)').waitFor();
    const frame = page.locator('.frame button').last();
    // A frame's line omits the keys that all frames share.
    expect(await frame.innerText()).toMatch(/^… "choices":\[\],"usage"/);
    await frame.click();
    expect(await frame.innerText()).toMatch(/\n {2}"object": "chat\.completion\.chunk",\n/);
    await page.getByRole('link', { name: 'Open its record' }).click();
    await page.locator('dialog .facts', { hasText: FLASH }).waitFor();
    await context.close();
  });

  test('D6 the admin’s requests use a key that the page creates for an hour; a second prompt reuses it', async () => {
    const { page, context } = await ask(FLASH);
    const liveKeys = async () => {
      const response = await filled.gateway.fetch('/admin/keys', { headers: ADMIN });
      const { data } = (await response.json()) as { data: { name: string; expires_at: string }[] };
      return data.filter(({ name }) => name.startsWith('Live view'));
    };
    const before = (await liveKeys()).length;
    for (let turn = 0; turn < 2; turn++) {
      await send(page);
      await streamView(page, FLASH).getByText('Finished (stop)').waitFor();
    }
    const keys = await liveKeys();
    expect(keys).toHaveLength(before + 1);
    for (const { expires_at } of keys) {
      const left = Date.parse(expires_at) - Date.now();
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThanOrEqual(3_600_000);
    }
    await context.close();
  });

  test('D6 tool calls are shown separately, with their names and arguments', async () => {
    const { page, context } = await ask(SMALL);
    await page.getByText('Further parameters').click();
    const parameters = { type: 'object', properties: { gate: { type: 'string' } } };
    const tools = [{ type: 'function', function: { name: 'open_gate', parameters } }];
    await page.getByLabel(/A JSON object/).fill(JSON.stringify({ tools, tool_choice: 'any' }));
    await send(page);
    await streamView(page, SMALL).getByText('Finished (tool_calls)').waitFor();
    const call = page.locator('.part.tool').first();
    expect(await call.locator('h3').innerText()).toMatch(/^Tool call \w+/);
    expect(typeof JSON.parse(await call.locator('p').innerText())).toBe('object');
    await context.close();
  });

  test('D6 a truncated stream shows an error after the received text', async () => {
    const { page, context, complaints } = await ask(`${FLASH}:cut`);
    await send(page);
    const cut = streamView(page, `${FLASH}:cut`);
    await cut.locator('.part.error').waitFor();
    expect(await cut.locator('.part.error').innerText()).toContain('upstream_truncated');
    expect(await cut.locator('.phase').innerText()).toBe('Failed');
    expect(await cut.locator('.part').count()).toBeGreaterThan(1);
    expect(await violationsOf(page)).toEqual([]);
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('D6 an error before the stream shows the message of the API', async () => {
    const { page, context } = await ask(`${FLASH}:status-500`);
    await send(page);
    const alert = await streamView(page, `${FLASH}:status-500`).getByRole('alert').innerText();
    expect(alert).toMatch(/^The request failed \(.+\)\s+DeepSeek: Simulated failure/);
    await context.close();
  });

  test('D6 the stop button ends the upstream, and the record is cancelled', async () => {
    const model = `${FLASH}:stall-mid`;
    const { page, context } = await ask(model);
    const asked = filled.gateway.simulator.requests.length;
    await send(page);
    await streamView(page, model).locator('.part').first().waitFor();
    const upstream = filled.gateway.simulator.requests
      .slice(asked)
      .find(({ text }) => text.includes('stall-mid'));
    await page.getByRole('button', { name: 'Stop' }).click();
    await streamView(page, model)
      .getByText(/^Stopped/)
      .waitFor();
    expect(await upstream?.closed).toBe('disconnected');
    await filled.gateway.logged((lines) =>
      lines.some(
        ({ event, asked: of, status }) => event === 'request' && of === model && status === 'cancelled',
      ),
    );
    await context.close();
  });

  test('D6 the request has the model in the field, sent by Enter, a click, Ctrl+Enter or Cmd+Enter', async () => {
    const { page, context, complaints } = await ask('');
    const model = page.getByLabel('Model', { exact: true });
    const ways: readonly (readonly [id: string, act: () => Promise<void>])[] = [
      [FLASH, () => model.press('Enter')],
      [SMALL, () => model.press('Enter')],
      [FLASH, () => page.getByRole('button', { name: 'Send' }).click()],
      [SMALL, () => page.getByLabel('Prompt').press('Control+Enter')],
      [FLASH, () => page.getByLabel('Prompt').press('Meta+Enter')],
      [SMALL, () => model.press('Control+Enter')],
    ];
    for (const [id, act] of ways) {
      await model.focus();
      await page.keyboard.press('Control+A');
      await page.keyboard.type(id);
      await act();
      await streamView(page, id).getByText('Finished (stop)').waitFor();
      expect(await page.locator('.stream-view').count()).toBe(1);
      expect(await model.inputValue()).toBe(id);
    }
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('D6 D9 by keyboard alone: a model and a prompt are sent, a frame is opened, and a stream is stopped', async () => {
    const { page, context, complaints } = await ask('');
    await tabTo(page, page.getByLabel('Model', { exact: true }));
    await page.keyboard.type(FLASH);
    await tabTo(page, page.getByLabel('Prompt'));
    await page.keyboard.press('Control+A');
    await page.keyboard.type('Hello');
    await tabTo(page, page.getByRole('button', { name: 'Send' }));
    await page.keyboard.press('Enter');
    await streamView(page, FLASH).getByText('Finished (stop)').waitFor();
    const frame = page.locator('.frame button').first();
    await tabTo(page, frame);
    await page.keyboard.press('Enter');
    expect(await frame.getAttribute('aria-expanded')).toBe('true');
    await page.getByLabel('Model', { exact: true }).fill(`${FLASH}:stall-mid`);
    await page.keyboard.press('Enter');
    await streamView(page, `${FLASH}:stall-mid`).locator('.part').first().waitFor();
    await tabTo(page, page.getByRole('button', { name: 'Stop' }));
    await page.keyboard.press('Enter');
    await page.getByText(/^Stopped/).waitFor();
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('D6 Copy as curl: a shell reads the request that Live sends, with $WEIR_KEY as the key', async () => {
    const { page, context } = await ask(FLASH);
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const prompt = `It's "quoted", $HOME \`ls\` \\ and\na second line`;
    await page.getByLabel('Prompt').fill(prompt);
    await page.getByText('Further parameters').click();
    await page.getByLabel(/A JSON object/).fill(`{"max_tokens": 5, "stop": "'"}`);
    await page.getByRole('button', { name: 'Copy as curl' }).click();
    await page.getByText('Copied').waitFor();
    const copied = await page.evaluate<string>('navigator.clipboard.readText()');
    const shell = `curl() { printf '%s\\0' "$@"; }\n${copied}`;
    const { stdout } = await run('sh', ['-c', shell], { env: { WEIR_KEY: 'weir_mine' } });
    const [address, , authorization, , type, , body = '', ...rest] = stdout.split('\0');
    expect([address, authorization, type, rest]).toEqual([
      `${filled.gateway.url}/v1/chat/completions`,
      'authorization: Bearer weir_mine',
      'content-type: application/json',
      [''],
    ]);
    const sent = page.waitForRequest('**/v1/chat/completions');
    await page.getByRole('button', { name: 'Send' }).click();
    expect(decodeObject(body)).toEqual(decodeObject((await sent).postData() ?? ''));
    expect(decodeObject(body)).toMatchObject({
      model: FLASH,
      max_tokens: 5,
      messages: [{ content: prompt }],
    });
    await context.close();
  });

  const OF_FLASH = [
    'Open the lower gate last: the chamber empties, the boat leaves.',
    'Gates first, then water; count each lock once.',
  ] as const;
  const GEMINI = 'gemini/gemini-3-flash-preview';

  test.each([
    ['Messages', '/v1/messages', FLASH, 'end_turn', ...OF_FLASH],
    ['Responses', '/v1/responses', FLASH, 'completed', ...OF_FLASH],
    ['Gemini', `/v1beta/models/${FLASH}:streamGenerateContent?alt=sse`, FLASH, 'STOP', ...OF_FLASH],
    [
      'Gemini',
      `/v1beta/models/${GEMINI}:streamGenerateContent?alt=sse`,
      GEMINI,
      'STOP',
      'The gate opens; the café’s basin follows, slowly.',
      'Water first, then gates, then words.',
    ],
  ])(
    'D6 as a client of %s, %s: text, thoughts, frames, usage and the finish',
    async (protocol, path, model, finish, text, thoughts) => {
      const { page, context, complaints } = await ask(model);
      await choose(page, protocol);
      const sent = page.waitForRequest(`**${path}`);
      await send(page);
      expect((await sent).postData()).toContain('Explain in three sentences');
      const view = streamView(page, model);
      await view.getByText(`Finished (${finish})`).waitFor();
      expect(await view.locator('.part.text p').innerText()).toBe(text);
      expect(await view.locator('.part.reasoning p').innerText()).toBe(thoughts);
      expect(await view.locator('summary').innerText()).toMatch(/^\d+ frames, [\d,]+ bytes$/);
      expect(await view.locator('.figures').innerText()).toMatch(
        /Tokens in\s+\d+\s[\s\S]*Tokens out\s+\d+\s/,
      );
      expect(await violationsOf(page)).toEqual([]);
      await page.getByRole('link', { name: 'Open its record' }).click();
      await page.locator('dialog .facts', { hasText: model }).waitFor();
      expect(complaints).toEqual([]);
      await context.close();
    },
  );

  test('D6 as a client of Gemini’s API: calls with their arguments; a cut stream is an error', async () => {
    const { page, context } = await ask(FLASH);
    await page.getByLabel('Prompt').fill('calls:[{"name":"gauge","arguments":{"city":"Ulm"}}]');
    await choose(page, 'Gemini');
    await page.getByText('Further parameters').click();
    await page
      .getByLabel(/A JSON object/)
      .fill(
        '{"tools": [{"functionDeclarations": [{"name": "gauge", "parametersJsonSchema": {"type": "object"}}]}]}',
      );
    await send(page);
    await streamView(page, FLASH).getByText('Finished (STOP)').waitFor();
    expect(await streamView(page, FLASH).innerText()).toMatch(/gauge[\s\S]*"city"[\s\S]*"Ulm"/);
    await page.locator('input[list=models]').first().fill(`${FLASH}:cut`);
    await send(page);
    const cut = streamView(page, `${FLASH}:cut`).locator('.part.error');
    await cut.waitFor();
    expect(await cut.innerText()).toContain('UNAVAILABLE');
    await context.close();
  });

  test('D6 a name that is typed during a stream is kept, and a second Enter sends no second request', async () => {
    const { page, context } = await ask(`${FLASH}:stall-mid`);
    const model = page.getByLabel('Model', { exact: true });
    await send(page);
    await streamView(page, `${FLASH}:stall-mid`).locator('.part').first().waitFor();
    const asked = filled.gateway.simulator.requests.length;
    await model.focus();
    await page.keyboard.press('Control+A');
    await page.keyboard.type(SMALL);
    // A heartbeat redraws the view.
    await streamView(page, `${FLASH}:stall-mid`).getByText('heartbeat').first().waitFor();
    expect(await model.inputValue()).toBe(SMALL);
    await model.press('Control+Enter');
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText(/^Stopped/).waitFor();
    await model.press('Enter');
    await model.press('Enter');
    await streamView(page, SMALL).getByText('Finished (stop)').waitFor();
    const requests = filled.gateway.simulator.requests.slice(asked);
    expect(requests.filter(({ path }) => path.includes('completions'))).toHaveLength(1);
    await context.close();
  });

  test('D6 a signed-in key uses itself; a forbidden model shows an error message', async () => {
    const [web] = filled.keys;
    const { page, context } = await ask('openai/gpt-4o-mini', '', {}, web.token);
    await send(page);
    await page.getByText(/no right/).waitFor();
    await page.getByLabel('Model', { exact: true }).fill(FLASH);
    await page.getByLabel('Prompt').click();
    await send(page);
    await streamView(page, FLASH).getByText('Finished (stop)').waitFor();
    await context.close();
  });

  describe('Y3 D2 signed in by Cloudflare Access', () => {
    let team: AccessTeam;
    let own: Filled;
    beforeAll(async () => {
      team = await AccessTeam.start();
      const vars = { ...team.settings, AUTH: 'access', ACCESS_ADMINS: 'ada@example.com' };
      own = await startFilled({ vars });
    });
    afterAll(async () => {
      await own[Symbol.asyncDispose]();
      await team[Symbol.asyncDispose]();
    });
    const openAs = (email: string, view: string) =>
      open(browser, `${own.page}#/${view}`, { headers: team.headers({ email }) });

    test('an admin sees everything without a token, makes and revokes a key, uses Live, and can sign out and in again', async () => {
      const { page, context, complaints } = await openAs('ada@example.com', 'keys');
      await page.locator('.who').getByText('ada@example.com').waitFor();
      await page.locator('tr', { hasText: 'web app' }).waitFor();
      await page.getByRole('button', { name: 'Create key' }).click();
      await page.getByLabel('Name').fill('by access');
      await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
      await page.locator('output').waitFor();
      await page.getByRole('button', { name: 'I have copied it' }).click();
      const line = page.locator('tr', { hasText: 'by access' });
      await chooseAction(page, 'Revoke', 'by access');
      await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
      await line.waitFor({ state: 'detached' });
      await page.goto(`${own.page}#/live?a=${FLASH}`);
      await send(page);
      await streamView(page, FLASH).getByText('Finished (stop)').waitFor();
      expect(await page.evaluate<string | null>("sessionStorage.getItem('weir-token')")).toBe(null);
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.locator('.who').getByText('ada@example.com').waitFor();
      expect(complaints).toEqual([]);
      await context.close();
    });

    test.each(['http://localhost:9', 'http://127.0.0.1:9'])(
      'a page of %s cannot make an admin’s browser create a key',
      async (origin) => {
        const { page, context } = await openAs('ada@example.com', 'keys');
        await page.locator('.who').getByText('ada@example.com').waitFor();
        await page.route(`${origin}/**`, (route) =>
          route.fulfill({ contentType: 'text/html', body: '<p>Hi' }),
        );
        await page.goto(`${origin}/evil`);
        const statuses: (readonly [string, number])[] = [];
        page.on('response', (response) => {
          const { method, url } = { method: response.request().method(), url: response.url() };
          if (url.endsWith('/admin/keys')) statuses.push([method, response.status()]);
        });
        const keys = `${own.gateway.url}/admin/keys`;
        await page.evaluate(`(async () => {
          const body = '{"name":"evil"}';
          const post = (init) => fetch('${keys}', { method: 'POST', mode: 'no-cors', ...init }).catch(() => {});
          await post({ body });
          await post({ body: new Blob([body]) });
          await post({ body, mode: 'cors', headers: { 'content-type': 'application/json' } });
          await fetch('${keys}', { mode: 'no-cors' }).catch(() => {});
        })()`);
        await page.setContent(
          `<form method="post" enctype="text/plain" action="${keys}"><input name='{"name":"evil","x":"' value='"}'></form>`,
        );
        await Promise.all([page.waitForURL(keys), page.evaluate('document.forms[0].submit()')]);
        // Chromium blocks some of these itself, but not the form.
        const sent = statuses.filter(([method]) => method !== 'OPTIONS');
        expect(sent.at(-1)).toEqual(['POST', 403]);
        expect(sent.every(([, status]) => status === 403)).toBe(true);
        const listed = await own.gateway.fetch('/admin/keys', { headers: ADMIN });
        expect(await listed.text()).not.toContain('evil');
        await context.close();
      },
    );

    test('another user sees only its own requests, and a token that it enters comes first', async () => {
      const { page, context, complaints } = await openAs('eve@example.com', `live?a=${FLASH}`);
      await send(page);
      await streamView(page, FLASH).getByText('Finished (stop)').waitFor();
      await page.locator('.who').getByText('eve@example.com').waitFor();
      await page.goto(`${own.page}#/requests`);
      await page.locator('tbody tr').first().waitFor();
      expect(await page.locator('tbody tr').count()).toBe(1);
      expect(await page.getByRole('navigation').innerText()).not.toContain('Keys');
      await page.getByRole('button', { name: 'Sign out' }).click();
      await signIn(page, ADMIN_TOKEN);
      await page.locator('.who').getByText('Admin').waitFor();
      expect(complaints).toEqual([]);
      await context.close();
    });
  });

  test('D6 AUTH=passthrough: the admin’s key of the page is never sent to a provider', async () => {
    await using own = await startFilled({ vars: { AUTH: 'passthrough' } });
    const { page, context } = await open(browser, own.page);
    await signIn(page, ADMIN_TOKEN);
    await page.goto(`${own.page}#/live?a=${FLASH}`);
    await send(page);
    await page.getByText(/AUTH=passthrough/).waitFor();
    expect(own.gateway.simulator.requests.filter(({ path }) => path.includes('completions'))).toEqual([]);
    await context.close();
  });
});
