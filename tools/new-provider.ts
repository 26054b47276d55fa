/**
 * Generates the files of a new provider with an OpenAI-compatible chat API: npm run new-provider <id>. Open work is marked
 * `TODO(<id>)`, and a test lists each mark.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { PROFILES, PROVIDERS } from '../src/providers/index.ts';

const ID = /^[a-z][a-z0-9]{1,23}$/;
const [id = ''] = process.argv.slice(2);
const problem = problemOf(id);
if (problem !== null) {
  process.stderr.write(`${problem}\n`);
  process.exit(2);
}
const NAME = id.toUpperCase();
const MODEL = `${id}-small`;

write(`src/providers/${id}.ts`, providerFile());
change('src/providers/index.ts', [
  [/^import type \{ AuthSettings, /m, `import { ${id} } from './${id}.ts';\n$&`],
  [/^(const REPLACEABLE = \[[^\]]*)\] as const;$/m, `$1  ${id},\n] as const;`],
]);
const scenes = 'tools/simulator/scenes.ts';
if (!readFileSync(scenes, 'utf8').includes('tableScene'))
  change(scenes, [
    [
      /^import type \{ Operation, .*$/m,
      "$&\nimport { wordsOf } from './script.ts';\nimport { tableScene } from './table.ts';",
    ],
  ]);
change(scenes, [
  [/^import \{ anthropic \}/m, `import { CHAT as ${NAME} } from '../../src/providers/${id}.ts';\n$&`],
  [/^ {2}compatible,\n((?: {2}.*\n)*)\];/m, `  compatible,\n$1${scene()}];`],
  [/^\} as const;$/m, `  ${id}: '/${id}/v1',\n} as const;`],
]);
const fixture = `test/fixtures/${id}/short-answer`;
write(`${fixture}/upstream.sse`, frames(MODEL));
write(`${fixture}/expected.sse`, frames(`${id}/${MODEL}`, ',"logprobs":null'));
write(`${fixture}/case.json`, caseFile());

process.stdout.write(`
The files of ${id} are written. Remaining steps:

1. src/providers/${id}.ts: its base URL, the table of the fields it accepts, and its error texts. Add source and date to each row.
   src/request-translation/rules.ts describes the rows. The scene in tools/simulator/scenes.ts rejects what the table declares as rejected.
2. ${fixture}/: replace upstream.sse with a recorded stream of ${id}, expected.sse with what the client must receive, and case.json with the request and its record
   (docs/contract/ has the rules that case.json names).
3. Each other TODO(${id}): npx vitest run tools/simulator/providers.test.ts lists them.
4. Optional: add its prices in src/metering/pricing/${id}.ts and list that file in price-book.ts.
5. npm run provider-lists && npm run matrix -- --write
   They write .dev.vars.example, package.json, docs/settings.md and docs/providers.md. Add the page of its API keys to its description in package.json.
6. npx biome check --write . && npm run types
   npx vitest run test/contract test/request-translation tools/simulator tools/provider-lists test/deploy.test.ts && npx vitest run --mode slow tools/matrix
`);

function problemOf(given: string): string | null {
  if (!ID.test(given)) {
    return 'npm run new-provider <id>: the id has 2 to 24 lowercase letters and digits and begins with a letter, for example acme';
  }
  return [...PROVIDERS, ...PROFILES].some((known) => known.id === given)
    ? `The provider ${given} already exists: src/providers/`
    : null;
}

function providerFile(): string {
  return `/** TODO(${id}): its name, and the pages of its API reference with the date on which they were read. */
import { openaiChat } from '../protocols/openai-chat/upstream-reader.ts';
import type { RequestRules } from '../request-translation/rules.ts';
import type { Provider } from './provider.ts';

export const CHAT: RequestRules = {
  // TODO(${id}): a row for each field that it renames, refuses or ignores (src/request-translation/rules.ts), with source and date:
  //
  //   // "Use max_tokens": https://docs.${id}.example/chat, read 2026-11-23.
  //   max_completion_tokens: { kind: 'renamed', to: 'max_tokens' },
  //   // 400 "store is not permitted", measured 2026-11-23.
  //   store: { kind: 'refused' },
  //
  // \`refused\` says that the API responds to the field with 4xx. A field about the request (\`store\`, \`user\`) or sampling is then not
  // sent, and x-weir-dropped names it. A field that changes the output (\`parallel_tool_calls\`, \`response_format\`) is still sent, so
  // that the client gets the provider's own refusal and no other output; UNSUPPORTED=drop leaves that out, too.
  fields: {},
  // TODO(${id}): in which form it accepts reasoning of earlier turns, and what it rejects in messages.
  messages: { reasoning: [{ form: 'reasoning_content' }] },
  streamUsage: 'on_request',
};

export const ${id}: Provider<'${NAME}_API_KEY' | '${NAME}_BASE_URL'> = {
  id: '${id}',
  // TODO(${id}): its name as the provider spells it.
  name: '${id}',
  hosts: [],
  apiKeySettings: ['${NAME}_API_KEY'],
  baseUrlSettings: ['${NAME}_BASE_URL'],
  // TODO(${id}): the base URL of its API, before /chat/completions.
  defaultBaseUrl: 'https://api.${id}.example/v1',
  endpoints: {
    chat: {
      path: () => '/chat/completions',
      request: { kind: 'chat', rules: CHAT },
      protocol: openaiChat,
    },
  },
  // TODO(${id}): differences in its responses (ProtocolQuirks in src/stream/types.ts), for example usage in a field of its own. Or nothing.
  //
  //   quirks: { usageField: ['${id}_meter', 'usage'] },
};
`;
}

/** Its row in the list of scenes. */
function scene(): string {
  return `  // TODO(${id}): how its stream differs from plain OpenAI chunks: then a file of its own, as zai.ts.
  tableScene({
    id: '${id}',
    rules: ${NAME},
    answers: { '${MODEL}': wordsOf('text', 'Seven words flow over the new weir.') },
    limit: 'max_tokens',
  }),
`;
}

/** A short stream of plain chunks, as the upstream sends it and as the client receives it. */
function frames(model: string, more = ''): string {
  const chunk = (choices: string, last = '') =>
    `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"${model}","choices":[${choices}]${last}}\n\n`;
  const choice = (delta: string, finish: string) =>
    `{"index":0,"delta":{${delta}}${more},"finish_reason":${finish}}`;
  return [
    chunk(choice('"role":"assistant"', 'null')),
    chunk(choice('"content":"Over the "', 'null')),
    chunk(choice('"content":"weir"', 'null')),
    chunk(choice('', '"stop"')),
    chunk('', ',"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15}'),
    'data: [DONE]\n\n',
  ].join('');
}

function caseFile(): string {
  const described = {
    about: `TODO(${id}): the source of this stream, and what it shows.`,
    rules: ['C1', 'C4', 'C8', 'U1', 'U2', 'U3'],
    route: 'chat',
    model: MODEL,
    stream: true,
    include_usage: true,
    policies: {},
    outcome: {
      status: 'finished',
      native_finish_reason: 'stop',
      usage: {
        prompt_tokens: 12,
        completion_tokens: 3,
        total_tokens: 15,
        cached_tokens: null,
        reasoning_tokens: null,
      },
      error: null,
      vendor_events: 0,
      vendor_tokens: 0,
    },
  };
  return `${JSON.stringify(described, null, 2)}\n`;
}

function write(path: string, text: string): void {
  if (existsSync(path)) throw new Error(`${path} already exists and is not overwritten`);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** Throws if a place is not found: then the layout of that file has changed. */
function change(path: string, changes: readonly (readonly [place: RegExp, text: string])[]): void {
  let text = readFileSync(path, 'utf8');
  for (const [place, put] of changes) {
    if (!place.test(text)) throw new Error(`${path} has no place for the new provider: ${place}`);
    text = text.replace(place, put);
  }
  writeFileSync(path, text);
}
