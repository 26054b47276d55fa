/**
 * Lists the source files that run for one streamed chat, through the built package, by V8's coverage: npm run prepack
 * && node tools/executed-files.ts. The caller has a gateway key in KV, the model is DeepSeek's, and an earlier request
 * has warmed the isolate. For the files of walk 1 in docs/architecture.md it counts the lines of the functions that
 * run, with their comments: what there is to read.
 */
import { timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { registerHooks } from 'node:module';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { MemoryStore } from '../test/metering/records.ts';

const DIST = join(import.meta.dirname, '..', 'dist');
const TOKEN = 'admin';
const EVENTS = [
  { delta: { role: 'assistant', content: '' } },
  { delta: { content: 'Hello' } },
  { delta: { content: ', ' } },
  { delta: { content: 'world' } },
  { delta: { content: '!' }, finish_reason: 'stop' },
].map((choice) => ({ id: 'c1', created: 1, model: 'deepseek-flash', choices: [{ index: 0, ...choice }] }));
const USAGE = { id: 'c1', choices: [], usage: { prompt_tokens: 5, completion_tokens: 4, total_tokens: 9 } };

// Globals of workerd that Node lacks.
const WORKERS = 'data:text/javascript,export const tracing = undefined; export class DurableObject {}';
registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier === 'cloudflare:workers' ? WORKERS : specifier, context),
});
Object.assign(crypto.subtle, { timingSafeEqual });
Object.assign(Uint8Array.prototype, {
  toHex(this: Uint8Array) {
    return Buffer.from(this).toString('hex');
  },
});
Object.assign(globalThis, { IdentityTransformStream: TransformStream });
Object.assign(globalThis, {
  fetch: async () =>
    new Response(
      [...EVENTS, USAGE].map((event) => `data: ${JSON.stringify(event)}\n\n`).join('') + 'data: [DONE]\n\n',
      { headers: { 'content-type': 'text/event-stream' } },
    ),
});

const { weir } = await import(pathToFileURL(join(DIST, 'weir.js')).href);
const env = { ADMIN_TOKEN: TOKEN, DEEPSEEK_API_KEY: 'k', WEIR_KV: new MemoryStore() };
const work: Promise<unknown>[] = [];
const worker = weir();

async function send(path: string, token: string, value: object): Promise<string> {
  const body = JSON.stringify(value);
  // Every client sends the length, and Node's `Request` does not add it.
  const headers = { 'content-type': 'application/json', 'content-length': String(body.length) };
  const request = new Request(`https://weir.example${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, ...headers },
    body,
  });
  const context = { waitUntil: (promise: Promise<unknown>) => void work.push(promise) };
  const response: Response = await worker.fetch(request, env, context);
  const text = await response.text();
  await Promise.all(work.splice(0));
  if (!response.ok) throw new Error(text);
  return text;
}

const chat = { model: 'deepseek/deepseek-flash', messages: [{ role: 'user', content: 'Hi' }], stream: true };
const { key }: { key: string } = JSON.parse(await send('/admin/keys', TOKEN, { name: 'measured' }));
await send('/v1/chat/completions', key, chat);

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
const text = await send('/v1/chat/completions', key, chat);
const { result } = await session.post('Profiler.takePreciseCoverage');
if (!text.includes('world') || !text.endsWith('data: [DONE]\n\n'))
  throw new Error(`The stream is incomplete: ${text}`);

const architecture = readFileSync(join(import.meta.dirname, '../docs/architecture.md'), 'utf8');
const [, walk = ''] = /^## Walk 1:(.*?)^## /ms.exec(architecture) ?? [];
const walked = new Set(
  [...walk.matchAll(/^\| \d+ \| \[`[^`]+`\]\(\.\.\/(src\/[^)]+)\)/gm)].map(([, path]) => path),
);

const files = result.flatMap(({ url, functions }) => {
  if (!url.startsWith(pathToFileURL(DIST).href)) return [];
  const path = `src/${relative(DIST, fileURLToPath(url)).replace(/\.js$/, '.ts')}`;
  const called = functions.flatMap(({ functionName, ranges: [range] }) =>
    range === undefined || range.count === 0 ? [] : [{ functionName, range }],
  );
  // A function without a name is the module itself, or a closure of one that has a name.
  const named = called.filter(({ functionName }) => functionName !== '');
  const lines = walked.has(path) ? linesOf(readFileSync(fileURLToPath(url), 'utf8'), named) : null;
  return called.length === 0 ? [] : [{ path, functions: called.length, lines }];
});

/** The lines of functions in a file, and of the comments right above them. */
function linesOf(
  code: string,
  functions: readonly { range: { startOffset: number; endOffset: number } }[],
): number {
  const lines = code.split('\n');
  const lineAt = (offset: number) => code.slice(0, offset).split('\n').length - 1;
  const counted = new Set<number>();
  for (const { range } of functions) {
    let first = lineAt(range.startOffset);
    while (/^\s*(\/\*|\*|\/\/)/.test(lines[first - 1] ?? '')) first--;
    for (let line = first; line <= lineAt(range.endOffset); line++) counted.add(line);
  }
  return counted.size;
}

const rows = files
  .sort((a, b) => (a.path < b.path ? -1 : 1))
  .map(
    ({ path, functions, lines }) =>
      `${path}: ${functions} functions${lines === null ? '' : `, ${lines} lines`}`,
  );
const total = files.reduce((sum, { lines }) => sum + (lines ?? 0), 0);
rows.push(`${files.length} files; those of walk 1 have ${total} lines of functions that run`);
process.stdout.write(`${rows.join('\n')}\n`);
