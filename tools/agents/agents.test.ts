/** Tests the scripts of the clients without running a client: pages, table, process groups and the watched network (J6). */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { exportsOf, Page, type Place, type Trial } from './client.ts';
import { CLIENTS, deploymentAliases } from './clients.ts';
import { refusedUpstream, run, watchNetwork } from './run.ts';
import { FILE, HEAD, linesIn, linesOf, type Row, withRows } from './table.ts';

const PLACE: Place = {
  url: 'http://127.0.0.1:1',
  key: 'weir_key',
  prompt: 'Correct it',
  home: '/home',
  project: '/project',
  packages: '/packages',
};

const trials = CLIENTS.flatMap((client) =>
  client.trials.map((trial) => [client.id, trial.protocol, trial.model, trial] as const),
);

describe('the scripts', () => {
  test.each(trials)(
    'J6 %s, %s at %s: the page has the configuration, and URL, key, model and prompt reach the client',
    (id, _, model, trial) => {
      const { files = {}, env, command, input } = trial.launch(PLACE, new Page(id));
      const given = [...Object.values(files), ...Object.values(env), ...command, input ?? ''].join('\n');
      for (const words of [PLACE.url, PLACE.key, model, PLACE.prompt]) expect(given).toContain(words);
      const places = [PLACE.home, PLACE.project, PLACE.packages];
      expect(Object.keys(files).filter((path) => !places.some((place) => path.startsWith(place)))).toEqual(
        [],
      );
      expect(trial.calls('/project/river.txt').length).toBeGreaterThan(2);
    },
  );

  test('J6 each page of a client has a script', () => {
    const pages = readdirSync(join(FILE, '..')).map((name) => name.replace('.md', ''));
    const ids = ['README', 'runs', ...CLIENTS.map(({ id }) => id)];
    expect(pages.sort()).toEqual(ids.sort());
  });

  test('J6 the models that a trial names without a provider are aliases of Codex’s page', () => {
    const aliases = Object.keys(JSON.parse(deploymentAliases()));
    const bare = trials.flatMap(([, , model]) => (model.includes('/') ? [] : [model]));
    expect(aliases.sort()).toEqual([...new Set(bare)].sort());
  });
});

describe('the table', () => {
  const text = readFileSync(FILE, 'utf8');

  /** Client, protocol, model and tool steps of each run in a line, with its requests. */
  const runsIn = (line: string) => {
    const [client = '', , protocol = '', models = ''] = line
      .split(' | ')
      .map((cell) => cell.replace(/^\| /, ''));
    return [...models.matchAll(/`([^`]+)` \((\d+), (\d+)\)/g)].map(
      ([, model = '', steps = '', requests = '']) => ({
        run: [client, protocol, model, steps],
        steps: Number(steps),
        requests: Number(requests),
      }),
    );
  };

  test('J6 docs/clients/runs.md has each trial, with its tool steps, by client in order: run npm run agents', () => {
    const [title, line, ...rows] = linesIn(text);
    expect([title, line]).toEqual(HEAD);
    const expected = CLIENTS.flatMap((client) =>
      client.trials.flatMap((trial) =>
        linesOf([{ client, trial, versions: [], requests: 0, problems: [], date: '' }]).flatMap(runsIn),
      ),
    );
    const found = rows.flatMap(runsIn).map(({ run }) => run);
    expect(found.toSorted()).toEqual(expected.map(({ run }) => run).toSorted());
    const clients = found.map(([client]) => client);
    expect(clients.filter((client, i) => client !== clients[i - 1])).toEqual([...new Set(clients)]);
    expect([...new Set(clients)]).toEqual([...new Set(expected.map(({ run: [client] }) => client))]);
  });

  test('J6 each run has versions, a date, and more requests than tool steps', () => {
    for (const row of linesIn(text).slice(HEAD.length)) {
      expect(row).toMatch(/ \| \S+ \d+\.\d+\.\d+(?:, \S+ \d+\.\d+\.\d+)* \| /);
      expect(row).toMatch(/ \| (?:edited|fails: .+) \| \d{4}-\d\d-\d\d \|$/);
      expect(runsIn(row)).not.toEqual([]);
      expect(runsIn(row).filter(({ steps, requests }) => requests <= steps)).toEqual([]);
    }
  });

  const trial: Pick<Trial, 'protocol' | 'model' | 'calls'> = {
    protocol: 'chat',
    model: 'a/b',
    calls: () => [{ name: 'x', arguments: {} }],
  };
  const rowOf = (id: string, more: Partial<Row> = {}): Row => {
    const client = { id, title: id };
    return {
      client,
      trial,
      versions: [`${id} 1.0.0`],
      requests: 2,
      problems: [],
      date: '2026-11-22',
      ...more,
    };
  };

  test('J6 rows of clients that ran are replaced, those of others stay, and the order is that of the scripts', () => {
    const ids = ['one', 'two', 'three'];
    const first = withRows(text, [rowOf('three'), rowOf('one')], ids);
    const second = withRows(first, [rowOf('two', { problems: ['exit 1', 'a|b'] }), rowOf('one')], ids);
    expect(linesIn(second)).toEqual([
      ...HEAD,
      '| [one](one.md) | one 1.0.0 | Chat | `a/b` (1, 2) | edited | 2026-11-22 |',
      '| [two](two.md) | two 1.0.0 | Chat | `a/b` (1, 2) | fails: exit 1; a\\|b | 2026-11-22 |',
      '| [three](three.md) | three 1.0.0 | Chat | `a/b` (1, 2) | edited | 2026-11-22 |',
    ]);
    expect(second.split('<!--')[0]).toBe(text.split('<!--')[0]);
  });

  test('J6 runs that differ in their model only are one line', () => {
    const other = { ...trial, model: 'c/d' };
    expect(
      linesOf([rowOf('one'), rowOf('one', { trial: other }), rowOf('one', { date: '2026-11-23' })]),
    ).toEqual([
      '| [one](one.md) | one 1.0.0 | Chat | `a/b` (1, 2), `c/d` (1, 2) | edited | 2026-11-22 |',
      '| [one](one.md) | one 1.0.0 | Chat | `a/b` (1, 2) | edited | 2026-11-23 |',
    ]);
  });

  test('J6 a document without the comments is not written', () => {
    expect(() => withRows('# Clients', [], [])).toThrow('no place for the table');
  });
});

test('J6 the export lines of a page become variables, without comments', () => {
  const code = 'export A=$WEIR_URL/v1 B=$WEIR_KEY   # any text\nexport C=a=b\nclaude\n';
  expect(exportsOf(code, PLACE)).toEqual({ A: 'http://127.0.0.1:1/v1', B: 'weir_key', C: 'a=b' });
});

test('J6 a page without the words that a script replaces is reported', () => {
  const page = new Page('codex');
  expect(() => page.replaced('model = "x"', { 'deepseek/deepseek-flash': 'y' })).toThrow(
    'docs/clients/codex.md',
  );
  expect(() => page.block('toml', 'no such words')).toThrow('docs/clients/codex.md has no toml block');
});

test('J6 a trial passes with as many refusals by the provider as it expects, and no others', () => {
  const refused = { status: 400, error_code: 'unsupported_parameter' };
  const passed = { status: 200, error_code: null };
  const records = [{ asked: 'a/b', attempts: [refused, refused, passed] }];
  expect(refusedUpstream(records, { learned: 2 })).toEqual([]);
  expect(refusedUpstream(records, { learned: 3 })).toEqual(['the provider refused 2 requests, expected 3']);
  const named = 'a/b: the provider returned 400 unsupported_parameter';
  expect(refusedUpstream(records, {})).toEqual([named, named]);
  expect(refusedUpstream([{ asked: 'a/b', attempts: [passed] }], {})).toEqual([]);
});

describe('a program', () => {
  const options = { cwd: '/', env: process.env, limitMs: 20_000 };
  const node = (code: string) => [process.execPath, '-e', code];
  /** Starts another process in its group, prints its id and stays. */
  const LINGERING = `const { pid } = require('child_process').spawn('sleep', ['600'], { stdio: 'ignore' }); console.log(pid);`;

  test('J6 its output and its input are passed, and an exit of 0 is no problem', async () => {
    const code = "process.stdin.on('data', (text) => process.stdout.write('got ' + text))";
    expect(await run(node(code), { ...options, input: 'words' })).toEqual({
      problem: undefined,
      output: 'got words',
    });
    const long = await run(node("process.stdout.write('x'.repeat(200_000), () => process.exit())"), options);
    expect([long.problem, long.output]).toEqual([undefined, 'x'.repeat(64 * 1024)]);
    expect(await run(node('process.exit(3)'), options)).toMatchObject({ problem: 'exit 3' });
    expect(await run(['/no/such/program'], options)).toMatchObject({
      problem: expect.stringContaining('ENOENT'),
    });
  });

  test('J6 processes that it leaves are killed at its end', async () => {
    const { output } = await run(node(`${LINGERING} setTimeout(() => process.exit(), 100)`), options);
    expect(isRunning(output.trim())).toBe(false);
  });

  test('J6 it and the processes that it started are killed at the time limit', async () => {
    const atLimit = await run(node(`${LINGERING} setInterval(() => {}, 1000)`), {
      ...options,
      limitMs: 1000,
    });
    expect(atLimit.problem).toBe('no end within 1 s');
    expect(isRunning(atLimit.output.trim())).toBe(false);
  });
});

/** A killed process whose parent has not read its end counts as ended. */
function isRunning(pid: string): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', pid], { encoding: 'utf8' });
  return stdout.trim() !== '' && !stdout.startsWith('Z');
}

test('J6 the watched network refuses and names other hosts, but not the registry, and this machine is reached', async () => {
  await using network = await watchNetwork('registry.example');
  const own = createServer((_, response) => response.end('own')).listen(0, '127.0.0.1');
  await new Promise((listening) => own.once('listening', listening));
  const address = own.address();
  const port = typeof address === 'object' ? address?.port : 0;
  const code = `
    const get = (url) => fetch(url).then((response) => response.text(), () => 'refused');
    const urls = ['https://statistics.example/x', 'http://plain.example/', 'https://registry.example/a', 'http://127.0.0.1:${port}/'];
    Promise.all(urls.map(get)).then((texts) => console.log(texts.join()));`;
  const { output } = await run([process.execPath, '-e', code], {
    cwd: '/',
    env: { PATH: process.env.PATH, ...network.env },
    limitMs: 20_000,
  });
  own.close();
  expect(output.trim()).toMatch(/^refused,.*,refused,own$/);
  expect(network.hosts().sort()).toEqual(['plain.example', 'statistics.example']);
});
