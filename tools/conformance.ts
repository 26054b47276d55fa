/** Runs the conformance suite against a gateway: npm run conformance -- --gateway <base URL> --key <key> --model <name> */
import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { areaOf, UPSTREAMS, type Upstream } from './conformance/case.ts';
import { CASES } from './conformance/cases/index.ts';
import { KNOWN, recordsOf, type Started } from './conformance/gateways.ts';
import { page } from './conformance/page.ts';
import { type Gateway, type Route, Stage } from './conformance/play.ts';
import { details, notOffered, type Report, summary, withResults } from './conformance/report.ts';
import { type Result, runSuite } from './conformance/suite.ts';
import { WEIR_FAILING } from './conformance/weir-failing.ts';

const HELP = `npm run conformance -- --gateway <base URL> --key <key> --model <name>
  --gateway <URL>     the gateway's base URL, with /v1
  --key <key>         its key
  --model <name>      the model that reaches the suite's Chat Completions upstream; for the others
                      --model messages=<name>, --model responses=<name>, --model gemini=<name>
  --header <header>   a header of each request, "name: value"; of one upstream, "messages=name: value"
  --name <text>       the gateway's name in the report
  --record-key <key>  reads Weir's usage records with this key
  --start <name>      starts a gateway instead: ${Object.keys(KNOWN).join(', ')}
  --port <number>     of the suite's upstreams (9200)
  --case <id>         one case, with what was sent and received; may be repeated
  --area <name>       the cases of one area
  --json <file>       writes the report
  --page <file>       writes a page of this report and of those in the files named last
  --docs              writes the scores of the files named last into docs/conformance.md
  --list              lists the cases
`;
/** How long the suite waits for the gateway to be pointed at its upstreams. */
const PATIENCE_MS = 60_000;
const DOCUMENT = fileURLToPath(new URL('../docs/conformance.md', import.meta.url).href);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    gateway: { type: 'string' },
    key: { type: 'string', default: 'conformance' },
    model: { type: 'string', multiple: true, default: [] },
    header: { type: 'string', multiple: true, default: [] },
    name: { type: 'string', default: 'Gateway' },
    'record-key': { type: 'string' },
    start: { type: 'string' },
    port: { type: 'string', default: '9200' },
    case: { type: 'string', multiple: true, default: [] },
    area: { type: 'string' },
    json: { type: 'string' },
    page: { type: 'string' },
    docs: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

process.exitCode = await main();

async function main(): Promise<number> {
  if (values.list) {
    for (const one of CASES) print(`${one.id.padEnd(44)} ${one.title}`);
    return 0;
  }
  const unknown = values.case.filter((id) => !CASES.some((one) => one.id === id));
  if (unknown.length > 0) return usageError(`No case ${unknown.join(', ')}: --list lists them`);
  const start = values.start === undefined ? undefined : KNOWN[values.start];
  if (values.start !== undefined && start === undefined)
    return usageError(`--start knows ${Object.keys(KNOWN).join(', ')}`);
  const others = await Promise.all(positionals.map(readReport));
  if (values.gateway === undefined && start === undefined && others.length > 0) {
    if (values.page !== undefined) await writeFile(values.page, page(others, CASES));
    if (values.docs)
      await writeFile(DOCUMENT, withResults(await readFile(DOCUMENT, 'utf8'), others, WEIR_FAILING));
    return 0;
  }
  if (values.help || (values.gateway === undefined && start === undefined)) {
    print(HELP);
    return values.help ? 0 : 2;
  }
  await using stage = await Stage.open(Number(values.port));
  if (start !== undefined) {
    await using gateway: Started = await start(stage.url);
    return await run(stage, gateway, others);
  }
  const gateway = givenGateway();
  if (gateway.upstreams.chat === undefined) return usageError('--model is missing');
  // Base URLs as the SDKs of OpenAI, Anthropic and Google take them.
  print(`Point the gateway at these upstreams, with any key:
  OpenAI (Chat Completions, Responses)  ${stage.url}/v1
  Anthropic (Messages)                  ${stage.url}
  Gemini                                ${stage.url}/v1beta`);
  if (!(await isReached(stage, gateway))) {
    print(`\n${gateway.url} does not send requests for ${gateway.upstreams.chat.model} to ${stage.url}/v1.`);
    return 2;
  }
  return await run(stage, gateway, others);
}

async function run(stage: Stage, gateway: Gateway, others: readonly Report[]): Promise<number> {
  const cases = CASES.filter(
    (one) =>
      (values.case.length === 0 || values.case.includes(one.id)) &&
      (values.area === undefined || areaOf(one) === values.area),
  );
  const { results, plays } = await runSuite(stage, gateway, cases, showProgress);
  const { name: reported, version } = gateway;
  const report: Report = {
    gateway: reported,
    version,
    date: new Date().toISOString(),
    command: commandLine(),
    node: process.versions.node,
    results,
  };
  process.stderr.write('\r\u001b[K');
  if (values.case.length > 0) {
    for (const one of cases) {
      const result = results.find(({ id }) => id === one.id);
      if (result !== undefined) print(details(one, result, plays.get(one.id)).join('\n'));
    }
  } else {
    print([...summary(report, cases), '', ...notOffered(results).map((line) => `  ${line}`)].join('\n'));
  }
  if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(report, null, 1)}\n`);
  if (values.page !== undefined) await writeFile(values.page, page([report, ...others], CASES));
  if (results.every(({ verdict }) => verdict === 'none')) return 2;
  return results.some(({ verdict }) => verdict === 'failed') ? 1 : 0;
}

/** Without the key, and without what concerns the output only. */
function commandLine(): string {
  const options = process.argv.slice(2).join(' ');
  const shown = options
    .replaceAll(/ ?--(?:json|page|port) \S+/g, '')
    .replace(/--((?:record-)?key) \S+/g, '--$1 …');
  return `npm run conformance -- ${shown.trim()}`;
}

function givenGateway(): Gateway {
  const url = (values.gateway ?? '').replace(/\/$/, '');
  const recordKey = values['record-key'];
  return {
    name: values.name,
    version: '',
    url,
    key: values.key,
    upstreams: Object.fromEntries(UPSTREAMS.flatMap((upstream) => routeOf(upstream))),
    ...(recordKey === undefined ? {} : { record: recordsOf(url, recordKey) }),
  };
}

/** The model and the headers of one upstream; empty if no model is given. */
function routeOf(upstream: Upstream): [Upstream, Route][] {
  const isOfOther = (text: string) => UPSTREAMS.some((other) => text.startsWith(`${other}=`));
  const own = (texts: readonly string[]) =>
    texts.flatMap((text) => (text.startsWith(`${upstream}=`) ? [text.slice(upstream.length + 1)] : []));
  const shared = (texts: readonly string[]) => texts.filter((text) => !isOfOther(text));
  const model = own(values.model)[0] ?? (upstream === 'chat' ? shared(values.model)[0] : undefined);
  if (model === undefined) return [];
  const headers = [...shared(values.header), ...own(values.header)].map((text) => {
    const [name = '', ...rest] = text.split(':');
    return [name.trim(), rest.join(':').trim()];
  });
  return [[upstream, { model, headers: Object.fromEntries(headers) }]];
}

async function isReached(stage: Stage, gateway: Gateway): Promise<boolean> {
  const [probe] = CASES;
  for (const end = Date.now() + PATIENCE_MS; probe !== undefined && Date.now() < end; ) {
    const play = await stage.play(probe, gateway);
    if (play.requests.length > 0) return true;
    process.stderr.write(
      `\rWaiting for the gateway (${play.reading.failure?.message.slice(0, 60) ?? ''})\u001b[K`,
    );
    await setTimeout(1_000);
  }
  return false;
}

function showProgress(done: number, all: number, result: Result): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${done} of ${all}  ${result.id}\u001b[K`);
  else if (done % 50 === 0 || done === all) process.stderr.write(`${done} of ${all}\n`);
}

async function readReport(file: string): Promise<Report> {
  // A file that `--json` has written.
  return JSON.parse(await readFile(file, 'utf8'));
}

function usageError(message: string): number {
  process.stderr.write(`${message}\n`);
  return 2;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
