/** Tests that the demo detects unexpected streams, aligns its table and reads its command line. */
import { execFile } from 'node:child_process';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Example } from './demo-examples.ts';
import { choosePort, isLost, wranglerArguments } from './demo-gateway.ts';
import { exportLines, readOptions } from './demo-options.ts';
import { show } from './demo-stream.ts';
import { compact, type JsonObject } from './json.ts';
import { createSimulator } from './server.ts';
import { table } from './terminal.ts';

const written: string[] = [];
beforeEach(() => {
  written.length = 0;
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => written.push(String(text)) > 0);
});
afterEach(() => vi.restoreAllMocks());

const example: Example = {
  title: 'A test',
  path: '/v1/chat/completions',
  body: { messages: [{ role: 'user', content: 'Go' }] },
  expected: { finish: 'stop', promptTokens: 1, completionTokens: 2, parts: ['reasoning', 'text'] },
};

function choice(delta: JsonObject, finish_reason: string | null = null): string {
  return compact({ choices: [{ index: 0, delta, finish_reason }] });
}
const USAGE = compact({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } });
const GOOD = [
  choice({ reasoning_content: 'Hm' }),
  choice({ content: 'Æ' }),
  choice({}, 'stop'),
  USAGE,
  '[DONE]',
];

/** The differences that the demo reports for a stream with this data, sent byte by byte. */
async function differencesOf(data: readonly string[]): Promise<string[]> {
  const chunks = [...new TextEncoder().encode(data.map((line) => `data: ${line}\n\n`).join(''))].map((byte) =>
    Uint8Array.of(byte),
  );
  await using gateway = await createSimulator({ replay: () => ({ chunks }) });
  return await show({ url: gateway.url, key: 'any' }, example);
}

test('an expected stream is printed part by part, and no difference is reported', async () => {
  expect(await differencesOf(GOOD)).toEqual([]);
  expect(written.join('')).toMatch(
    /prompt {5}Go\n {2}reasoning {2}Hm\n {2}text {7}Æ\n {13}stop · 1 \+ 2 tokens/,
  );
});

test.each([
  ['no [DONE]', GOOD.slice(0, -1), '[DONE]: 0, expected 1'],
  ['two finishes', [choice({}, 'stop'), ...GOOD], 'finish: stop,stop, expected stop'],
  ['other parts', GOOD.slice(1), 'parts: text, expected reasoning,text'],
  ['no usage', GOOD.filter((line) => line !== USAGE), 'prompt tokens: undefined, expected 1'],
  [
    'an error',
    [...GOOD.slice(0, 2), '{"error":{"message":"x"}}', '[DONE]'],
    'parts: reasoning,text,error, expected reasoning,text',
  ],
  ['a chunk after [DONE]', [...GOOD, USAGE], 'data after [DONE]'],
])('%s is reported', async (_, data, difference) => {
  expect(await differencesOf(data)).toContain(difference);
});

test('numbers are right-aligned below their titles, words left-aligned', () => {
  const lines = table(
    ['name', 'count'],
    [
      ['a', 5],
      ['longer', 1234567],
    ],
  );
  expect(lines).toEqual(['  name      count', '  a             5', '  longer  1234567']);
});

describe('the command line', () => {
  test.each<[args: string[], message: RegExp]>([
    [['--prot', '1'], /^Unknown option --prot: did you mean port\? npm run demo -- --help/],
    [['--port'], /^--port must be a number from 1 to 65535/],
    [['--port', '70000'], /^--port must be a number/],
    [['--fault', 'hunter'], /^--fault must be one of: hang /],
    [['cut'], /^Unexpected argument: "cut"/],
    [['--var', 'ALIASES'], /^--var must be NAME:value/],
    [['--var', 'aliases:{}'], /^--var must be NAME:value/],
    [['--var', 'ADMIN_TOKEN:x'], /^--var must be NAME:value, .* not ADMIN_TOKEN/],
  ])('%j: is rejected with the valid values', (args, message) => {
    const read = readOptions(args);
    expect(read).toMatchObject({ kind: 'wrong' });
    expect(read.kind === 'wrong' && read.message).toMatch(message);
  });

  test('--port, --fault and --once', () => {
    expect(readOptions(['--port', '9000', '--fault', 'cut', '--once'])).toEqual({
      kind: 'run',
      once: true,
      fault: 'cut',
      port: 9000,
      vars: {},
    });
    expect(readOptions([])).toEqual({
      kind: 'run',
      once: false,
      fault: undefined,
      port: undefined,
      vars: {},
    });
  });

  test.each([
    [['--help'], null, /--port <number>[\s\S]*--fault <name>[\s\S]*cut/],
    [['--prot', '1'], 2, /^Unknown option '--prot'[\s\S]*npm run simulator -- --help lists the options\n$/],
    [['--port', 'x'], 2, /^--port must be a number/],
    [['--pace', 'x'], 2, /^--pace must be a number/],
    [['--fault', 'x'], 2, /^--fault must be one of: .*cut/],
  ])('the simulator with %j says what it takes, without a stack trace', async (args, code, text) => {
    const main = join(import.meta.dirname, 'main.ts');
    const ended = await promisify(execFile)(process.execPath, [main, ...args]).catch((error) => error);
    expect(ended.code ?? null).toBe(code);
    expect(code === null ? ended.stdout : ended.stderr).toMatch(text);
    expect(ended.stderr).not.toMatch(/ at /);
  });

  test('--var, once and more often', () => {
    expect(readOptions(['--var', 'ALIASES:{"a":"b/c:d"}', '--var=RETRIES:0'])).toMatchObject({
      kind: 'run',
      vars: { ALIASES: '{"a":"b/c:d"}', RETRIES: '0' },
    });
  });

  test('--help prints the options, and an invalid option prints no stack trace', async () => {
    const demo = join(import.meta.dirname, 'demo.ts');
    const run = promisify(execFile);
    const { stdout } = await run(process.execPath, [demo, '--help']);
    expect(stdout).toContain('--port <number>');
    const failed: unknown = await run(process.execPath, [demo, '--prot', '1']).catch(
      (error: unknown) => error,
    );
    expect(failed).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^Unknown option --prot.*\n$/),
    });
  });
});

describe('the port', () => {
  test('is the default if it is free, otherwise another one, and null if the requested one is in use', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((listening) => server.once('listening', listening));
    const address = server.address();
    const taken = typeof address === 'object' && address !== null ? address.port : 0;
    const other = await choosePort(undefined, taken);
    expect(other).not.toBe(taken);
    expect(other).toBeGreaterThan(0);
    expect(await choosePort(taken, 1)).toBeNull();
    await new Promise((closed) => server.close(closed));
    expect(await choosePort(undefined, taken)).toBe(taken);
    expect(await choosePort(taken, 1)).toBe(taken);
  });
});

test('the lines for a client’s shell name the variables that SDKs read', () => {
  expect(exportLines('http://127.0.0.1:8787', 'weir_a')).toEqual([
    'export WEIR_URL=http://127.0.0.1:8787 WEIR_KEY=weir_a',
    'export OPENAI_BASE_URL=http://127.0.0.1:8787/v1 OPENAI_API_KEY=$WEIR_KEY',
    'export ANTHROPIC_BASE_URL=http://127.0.0.1:8787 ANTHROPIC_AUTH_TOKEN=$WEIR_KEY',
  ]);
});

test.each<[what: string, child: { exitCode: number | null; signalCode: NodeJS.Signals | null }]>([
  ['whose process has exited', { exitCode: null, signalCode: 'SIGKILL' }],
  ['that no longer responds although its process runs', { exitCode: null, signalCode: null }],
])('a gateway %s is lost', async (_, child) => {
  const port = await choosePort(undefined, 0);
  await isLost(`http://127.0.0.1:${port}`, child);
});

test('W12 the demo opens no remote session, for which wrangler would ask for a login', () => {
  expect(wranglerArguments({}, 8787, '/tmp/demo', '/tmp/demo/settings')).toContain('--local');
});
