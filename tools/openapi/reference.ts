/** The text of `docs/api.md`: routes, parameters and fields, from what `docs/openapi.json` is made of. */
import { linked, table } from '../tables/commented.ts';
import { BUDGET_TEXTS, KEY_TEXTS, MODEL_TEXTS, RECORD_TEXTS, STATUS_TEXTS, SUMS_TEXTS } from './fields.ts';
import { OPERATIONS, type Operation } from './operations.ts';

const INTRO = `# Routes and fields

\`npm run openapi\` writes this page, and [openapi.json](openapi.json) with the schemas (OpenAPI 3.1), from the table of routes; a test compares. All paths are below \`BASE_PATH\`, and
\`HEAD\` works where \`GET\` does. Those with \`/v1\` also work without it, except \`/v1/admin/…\` beside a site (\`ORIGIN\` without \`BASE_PATH\`). [Headers](headers.md) has other paths that
work, [errors](errors.md) what a route refuses.`;

const TAGS: readonly (readonly [Operation['tag'], string])[] = [
  [
    'Completions',
    '`caller`: a client with a gateway key, or one that [`AUTH`](keys.md#who-may-call) admits in another way.',
  ],
  ['Responses', 'Kept ones: [durable Responses](durable-responses.md).'],
  ['Models', 'For OpenAI’s, Anthropic’s and Google’s SDKs: [the list](headers.md#model-list).'],
  ['Usage', 'A key sees its own usage, the admin all: [metering](metering.md).'],
  ['Keys', '[Keys](keys.md), [budgets](budgets.md).'],
  ['Teams', '[Teams](budgets.md#teams).'],
  [
    'Administration',
    '[Privacy](privacy.md#erase-a-user), [audit](keys.md#audit), [status](operations.md#status).',
  ],
  ['Other', ''],
];

/** Placeholders in plain texts are code, or they would be markup. */
const escaped = (text: string) => linked(text).replace(/<([a-z]+)>/g, '`<$1>`');

function routesOf(tag: Operation['tag']): string {
  const rows = OPERATIONS.filter((operation) => operation.tag === tag).map(
    ({ method, path, auth, summary, query = {} }) => {
      const names = Object.keys(query).map((name) => `\`${name}\``);
      return [
        `\`${method} ${path.replaceAll(/\{(\w+)\}/g, '<$1>')}\``,
        auth,
        linked(summary),
        names.join(', ') || ' ',
      ];
    },
  );
  return table(['route', 'for', 'what', 'query'], rows);
}

function fieldsOf(texts: Readonly<Record<string, string>>): string {
  return table(
    ['field', 'meaning'],
    Object.entries(texts).map(([name, text]) => [`\`${name}\``, escaped(text)]),
  );
}

function parametersOf(path: string): string {
  const { query = {} } = OPERATIONS.find((one) => one.method === 'GET' && one.path === path) ?? {};
  return table(
    ['parameter', 'value'],
    Object.entries(query).map(([name, text]) => [`\`${name}\``, escaped(text)]),
  );
}

/** The text of the page. */
export function referenceText(): string {
  const routes = TAGS.flatMap(([tag, text]) => [
    `### Routes: ${tag.toLowerCase()}`,
    ...(text === '' ? [] : [text]),
    routesOf(tag),
  ]);
  const sections = [
    INTRO,
    '## Routes',
    ...routes,
    '## Parameters of a report',
    '`GET /v1/usage`:',
    parametersOf('/v1/usage'),
    '## Parameters of a list of records',
    '`GET /v1/usage/records`:',
    parametersOf('/v1/usage/records'),
    '## Fields of a usage record',
    fieldsOf(RECORD_TEXTS),
    '## Fields of a report',
    fieldsOf(SUMS_TEXTS),
    '## Fields of a key',
    'As `POST` and `PATCH /admin/keys` take them:',
    fieldsOf(KEY_TEXTS),
    '## Fields of a budget',
    'In `budget` of `GET /v1/key` and `GET /admin/keys/<id>`:',
    fieldsOf(BUDGET_TEXTS),
    '## Fields of a model',
    fieldsOf(MODEL_TEXTS),
    '## Fields of the status',
    'Rates and times are of the newest 1,000 records of the last hour, errors also of the newest 200 failed ones of a day. With `LEDGER=kv` the query lists all records of today and yesterday.',
    fieldsOf(STATUS_TEXTS),
  ];
  return `${sections.join('\n\n')}\n`;
}
