/** Tests the table of fields, and finds lists of field names that stand elsewhere. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fieldOf, fieldsBy, fieldsWhere } from '../../src/facts/fields.ts';
import { words } from '../../src/shared/words.ts';

test('a name that no row has, such as one of every object, has no facts', () => {
  for (const name of ['no_field', 'constructor', '__proto__']) expect(fieldOf(name)).toEqual({});
});

test('no field has two rows', () => {
  const names = fieldsWhere(() => true);
  const text = readFileSync(join(import.meta.dirname, '../../src/facts/fields.ts'), 'utf8');
  const rows = [...text.matchAll(/^ {2}\[(?:\n {4})?['`]([\w\s]+)['`],/gm)].flatMap(([, row = '']) =>
    words(row),
  );
  expect(rows.toSorted()).toEqual(names.toSorted());
});

// Hashes of prompts are stored for 30 days: a new order would make all of them breaks of the cache.
test('M10 the fields of which hashes are made keep their order', () => {
  const hashedAs = (part: string) => fieldsWhere(({ hashed }) => hashed === part);
  expect(hashedAs('system')).toEqual(['system', 'instructions', 'systemInstruction', 'system_instruction']);
  expect(hashedAs('tools')).toEqual(['tools', 'functions']);
  expect(hashedAs('conversation')).toEqual(['messages', 'input', 'contents']);
  expect(hashedAs('setting')).toEqual([
    ...[
      'thinking',
      'output_config',
      'reasoning',
      'reasoning_effort',
      'enable_thinking',
      'chat_template_kwargs',
    ],
    ...[
      'tool_choice',
      'function_call',
      'toolConfig',
      'tool_config',
      'response_format',
      'text',
      'output_format',
    ],
  ]);
});

test('Z3 of two fields that exclude each other, the one that says less is named first', () => {
  expect(fieldsBy(({ says }) => says)).toEqual([
    ...['reasoning_effort', 'thinking_budget', 'top_k', 'top_p', 'temperature', 'max_tokens'],
    ...['reasoning', 'thinking'],
  ]);
});

/** Lists that stay where they are, with the reason. */
const OTHER_LISTS: Readonly<Record<string, string>> = {
  'canonical/finish-reason.ts REASONS': 'words of finish reasons',
  'ledger/limits/prompt-shapes.ts TEXT_PARTS': 'types of content parts',
  'ledger/limits/prompt-shapes.ts TEXT_PART_FIELDS': 'members of content parts',
  'ledger/limits/prompt-shapes.ts MEMBERS': 'members of calls, reasoning and citations',
  'api/parameters.ts RECORD_PARAMS': 'parameters of lists of records',
  'api/parameters.ts USAGE_PARAMS': 'parameters of reports',
  'ledger/records/sum-columns.ts DIMENSIONS': 'columns of reports',
  'ledger/records/sums.ts EXPRESSIONS': 'columns of reports',
  'metering/record.ts CACHE_CAUSES': 'causes in records',
  'metering/report.ts FILTERS': 'columns of reports',
  'metering/report.ts GROUPS': 'columns of reports',
  'protocols/anthropic-messages/client-format.ts DELTAS': 'types of content deltas',
  'protocols/anthropic-messages/client.ts SAME_FIELDS': 'what this client reads: its protocol',
  'protocols/anthropic-messages/client.ts READ_FIELDS': 'what this client reads: its protocol',
  'protocols/anthropic-messages/client.ts FIELD_TYPES': 'types that this client checks: its protocol',
  'protocols/anthropic-messages/request-writer.ts TRANSLATED': 'what this writer writes: its protocol',
  'protocols/anthropic-messages/request-writer.ts UNSUPPORTED':
    'what the API refuses: a table with its source',
  'protocols/bedrock-converse/request-writer.ts WRITTEN': 'what this writer writes: its protocol',
  'protocols/bedrock-converse/request-writer.ts UNSUPPORTED': 'what the API lacks: a table of the protocol',
  'protocols/gemini/client.ts FIELD_NAMES': 'names in errors of this client: its protocol',
  'protocols/gemini/client.ts READ_FIELDS': 'what this client reads: its protocol',
  'protocols/gemini/client.ts TYPES': 'types that this client checks: its protocol',
  'protocols/gemini/embeddings.ts HANDLED': 'what this writer writes: its protocol',
  'protocols/gemini/request-config.ts CONFIG_FIELDS': 'what this writer writes: its protocol',
  'protocols/gemini/request-contents.ts WITHOUT_TEXT': 'members of content parts',
  'protocols/gemini/request-writer.ts FROM_SETTINGS': 'what this writer writes: its protocol',
  'protocols/gemini/request-writer.ts UNSUPPORTED': 'what the API lacks: a table of the protocol',
  'protocols/gemini/request-writer.ts NATIVE_NAMES': 'two spellings of the same names: its protocol',
  'protocols/openai-chat/upstream-reader.ts REASONING_MEMBERS': 'members of content parts of responses',
  'protocols/openai-responses/client-request.ts OWN_FIELDS': 'what this client reads: its protocol',
  'protocols/openai-responses/client-request.ts ALTERNATIVES': 'advice in errors of this client',
  'protocols/openai-responses/client-request.ts FIELD_TYPES': 'types that this client checks: its protocol',
  'protocols/openai-responses/client-request.ts STATEFUL': 'what this client refuses: its protocol',
  'protocols/openai-responses/passthrough.ts SHORT_FIELDS': 'fields of a response',
  'protocols/openai-responses/request-writer.ts WRITTEN': 'what this writer writes: its protocol',
  'request-translation/dropped-fields.ts FROM_RESPONSES': 'members of messages',
  'fitting/body-fields.ts ALIASES': 'other names of fields in the texts of refusals',
  'fitting/refusal-words.ts STOCK_WORDS': 'words of refusals',
  'fitting/rows.ts thinking reasoning reasoning_effort output_config': 'words of refusals',
  'protocols/bedrock-converse/request-writer.ts max_tokens max_tokens_to_sample max_gen_len':
    'names of the limit by maker: a table of the protocol',
  'protocols/shared/request-form.ts messages tools tool_choice': 'what writers get typed: the conversation',
  'stream/fast-path/template.ts reasoning text thinking': 'members of events',
  'fitting/fit.ts CONDITIONS': 'names of conditions',
  'fitting/body-fields.ts LISTS': 'lists whose elements have names of their own in refusals',
  'fitting/body-fields.ts MARKED_LISTS': 'lists whose elements have cache marks',
  'fitting/fit.ts SCHEMA_PATHS': 'places of schemas in each protocol',
  'fitting/statements.ts CONDITIONS': 'words of refusals',
  'fitting/statements.ts FILLERS': 'words of refusals',
  'protocols/workers-ai/embeddings.ts HANDLED': 'what this writer writes: its protocol',
  'routes.ts ROUTES': 'names of routes',
  'settings/aliases.ts FIXED_FIELDS': 'what an operator may not set',
  'settings/providers.ts FIXED': 'what an operator may not rename or drop',
  'stream/fast-path/template.ts READ_KEYS': 'members of events',
  'upstream/provider-message.ts OWN_KEYS': "keys of objects whose names are the caller's",
};

/** So many names of fields are a list. */
const MIN_NAMES = 3;

/** Lists that have a name, in a declaration of a module. */
const NAMED = /^(?:export )?const (\w+)[^=;]*=\s*((?:new (?:Set|Map)\()?(?:[[{]|word(?:s|Set)\()[^;]*);/gm;
/** Texts that follow each other, as in `['a', 'b'].includes(name)` and `omit(body, 'a', 'b')`. */
const UNNAMED = /'[\w ]*'(?:,\s*'[\w ]*')+/g;

function namesIn(list: string): readonly string[] {
  const names = [...list.matchAll(/['`]\s*(\w[\w\s$]*)['`]|^ {2}(\w+):/gm)].flatMap(
    ([, text = '', key = text]) => words(key),
  );
  return [...new Set(names)].filter((name) => Object.keys(fieldOf(name)).length > 0);
}

function listsOf(path: string, text: string): readonly string[] {
  const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
  const isList = (list: string) => namesIn(list).length >= MIN_NAMES;
  const named = [...code.matchAll(NAMED)].filter(([, , list = '']) => isList(list));
  const others = [...code.replace(NAMED, '').matchAll(UNNAMED)].filter(([list]) => isList(list));
  return [
    ...named.map(([, name]) => `${path} ${name}`),
    ...others.map(([list]) => `${path} ${namesIn(list).join(' ')}`),
  ];
}

test.each([
  "export const MINE = ['temperature', 'top_p', 'seed'];",
  "const MINE: readonly string[] = [\n  ...OTHERS,\n  ...['temperature', 'top_p', 'seed'],\n];",
  "const MINE = new Set(['temperature', 'top_p', 'seed']);",
  "const MINE = words('temperature top_p seed');",
  'const MINE = wordSet(`\n  temperature top_p\n  seed\n`);',
  'const MINE = {\n  temperature: true,\n  top_p: true,\n  seed: false,\n};',
  "const MINE = [['temperature', 1], ['top_p', 1], ['seed', null]];",
  "export function isMine(name: string) {\n  return ['temperature', 'top_p', 'seed'].includes(name);\n}",
  "const isMine = (name: string) => ['temperature', 'top_p', 'seed'].includes(name);",
  "  for (const name of ['temperature', 'top_p', 'seed']) drop(name);",
])('a new list is found: %s', (code) => {
  expect(listsOf('a.ts', `/** A file. */\n${code}\n`)).toHaveLength(1);
});

test.each([
  "const TWO = ['temperature', 'top_p'];",
  "/** ['temperature', 'top_p', 'seed'] */\nconst NONE = [];",
  "const COLOURS = ['red', 'green', 'blue'];",
])('no list of fields: %s', (code) => {
  expect(listsOf('a.ts', `${code}\n`)).toEqual([]);
});

test("lists of fields are queries of the table: no list of their names is elsewhere, but in providers' files", () => {
  const src = join(import.meta.dirname, '../../src');
  const paths = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(
    (path) => /\.ts$/.test(path) && !/^(?:facts|providers|dashboard)\//.test(path),
  );
  const lists = paths.flatMap((path) => listsOf(path, readFileSync(join(src, path), 'utf8')));
  expect(lists.toSorted()).toEqual(Object.keys(OTHER_LISTS).toSorted());
});
