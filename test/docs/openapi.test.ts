/** `docs/openapi.json` and `docs/api.md` are what `npm run openapi` writes, with every route; `docs/llms.txt` names every document. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { REFUSAL_PARAMS, USAGE_PARAMS } from '../../src/api/parameters.ts';
import { REFUSAL_GROUPS } from '../../src/metering/refusals.ts';
import { GROUPS } from '../../src/metering/report.ts';
import { openApiText, routeProblems } from '../../tools/openapi/document.ts';
import { queryOf } from '../../tools/openapi/parameters.ts';
import { referenceText } from '../../tools/openapi/reference.ts';
import { writtenLlmsText } from '../../tools/site/llms.ts';

const DOCS = join(import.meta.dirname, '..', '..', 'docs');

test('every route of the core and of features has a description, and every description a route', () => {
  expect(routeProblems()).toEqual([]);
});

test('docs/openapi.json is what the code says: otherwise run npm run openapi', () => {
  expect(readFileSync(join(DOCS, 'openapi.json'), 'utf8')).toBe(openApiText());
});

test('docs/api.md is what the code says: otherwise run npm run openapi', () => {
  expect(readFileSync(join(DOCS, 'api.md'), 'utf8')).toBe(referenceText());
});

test('the descriptions of group_by name each group', () => {
  const usage = queryOf({ USAGE_PARAMS }).group_by?.replace(/^with commas: |, tag:<name>.*$/g, '');
  expect(usage?.split(', ')).toEqual(GROUPS);
  expect(queryOf({ REFUSAL_PARAMS }).group_by?.split(', ').sort()).toEqual(REFUSAL_GROUPS.toSorted());
});

test('a parameter without a description is an error', () => {
  const params = { ...USAGE_PARAMS, colour: USAGE_PARAMS.model };
  expect(() => queryOf({ USAGE_PARAMS: params })).toThrow(
    'The parameter colour of USAGE_PARAMS has no comment',
  );
});

test('docs/llms.txt has the list of docs/README.md and the pages of clients: otherwise run npm run llms', () => {
  expect(readFileSync(join(DOCS, 'llms.txt'), 'utf8')).toBe(writtenLlmsText());
});

test('docs/llms.txt links to every document, and to nothing that is not there', () => {
  const text = readFileSync(join(DOCS, 'llms.txt'), 'utf8');
  expect(text).toMatch(/^# Weir\n\n> /);
  const linked = [...text.matchAll(/\]\(([^)#\s]+)\)/g)].map(([, file = '']) => file);
  expect(linked.filter((file) => !existsSync(join(DOCS, file)))).toEqual([]);
  const pages = readdirSync(DOCS, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.md'),
  );
  // Its list is README.md. Decisions have an index of their own, and so has the contract.
  const missing = pages.filter(
    (path) => !linked.includes(path) && !/^README|^(decisions|contract)\/(?!README)/.test(path),
  );
  expect(missing).toEqual([]);
});
