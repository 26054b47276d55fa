/** Tests what the simulated Converse refuses of documents, citations, results, system texts and roles. */
import { expect, test } from 'vitest';
import { type ConverseModel, converseProblem } from './converse-check.ts';
import type { JsonObject } from './json.ts';

const CLAUDE: ConverseModel = {
  ...{ reasoning: 'signed', callIds: /./, takesNamedChoice: true, takesDefinitions: true },
  ...{ cachePoints: 'everywhere', takesCitations: true },
};
const NOVA: ConverseModel = { ...CLAUDE, reasoning: 'none', takesCitations: undefined as never };

const citations = { enabled: true };
const TEXT = { text: 'Hi' };
const POINT = { cachePoint: { type: 'default' } };
const pdf = (name: string, more: object = {}) => ({
  document: { format: 'pdf', name, source: { bytes: 'QUJD' }, ...more },
});
const txt = (source: object, more: object = { citations }) => ({
  document: { format: 'txt', name: 'a', source, ...more },
});
const user = (...content: object[]) => ({ role: 'user', content });
const CALL = { toolUse: { toolUseId: 't', name: 'look', input: {} } };
const TOOLS = {
  toolConfig: { tools: [{ toolSpec: { name: 'look', inputSchema: { json: { type: 'object' } } } }] },
};
const withResult = (...content: object[]) => ({
  messages: [
    user(TEXT),
    { role: 'assistant', content: [CALL] },
    user({ toolResult: { toolUseId: 't', content } }),
  ],
  ...TOOLS,
});
const ask = (...content: object[]) => ({ messages: [user(...content, TEXT)] });

test.each<[name: string, body: object, problem: RegExp | undefined, model?: ConverseModel]>([
  ['a PDF to be cited', ask(pdf('a', { citations })), undefined],
  [
    'a text to be cited, and one in parts',
    ask(txt({ text: 'x' }), {
      document: { format: 'txt', name: 'b', source: { content: [{ text: 'x' }] }, citations },
    }),
    undefined,
  ],
  ['a text as bytes to be cited', ask(txt({ bytes: 'QUJD' })), /PDF specified was not valid/],
  ['a text as bytes', ask(txt({ bytes: 'QUJD' }, {})), undefined],
  [
    'a table to be cited',
    ask({ document: { format: 'csv', name: 'a', source: { bytes: 'QUJD' }, citations } }),
    /Only txt and pdf/,
  ],
  [
    'a document to be cited at a model without citations',
    ask(pdf('a', { citations })),
    /doesn't support citations/,
    NOVA,
  ],
  ['one document with citations and one without', ask(pdf('a', { citations }), pdf('b')), /all or none/],
  ['a document of two sources', ask(txt({ text: 'x', bytes: 'QUJD' }, {})), /must set one of/],
  [
    'a document of another format',
    ask({ document: { format: 'rtf', name: 'a', source: { bytes: 'QUJD' } } }),
    /enum value set/,
  ],
  ['a document without a text beside it', { messages: [user(pdf('a'))] }, /text block is required/],
  ['a cache point behind a PDF', ask(pdf('a'), POINT), undefined],
  ['a cache point behind a text', ask(txt({ text: 'x' }, {}), POINT), /content.1.type: Field required/],
  ['a cache point behind a text at Nova', ask(txt({ text: 'x' }, {}), POINT), undefined, NOVA],
  ['a result with a document alone', withResult(pdf('a')), undefined],
  ['a result with a value', withResult({ json: { a: 1 } }), undefined],
  ['a result with citations', withResult(pdf('a', { citations })), /not supported in tool result documents/],
  ['a result with a cache point', withResult(TEXT, POINT), /must set one of/],
  ['a call of the user', { messages: [user(TEXT, CALL)], ...TOOLS }, /toolUse/],
  ['what the user cites', { messages: [user(TEXT, { citationsContent: {} })] }, /citationsContent/],
  [
    'a document of the assistant',
    { messages: [user(TEXT), { role: 'assistant', content: [TEXT, pdf('a')] }] },
    /document/,
  ],
  [
    'what the assistant cites',
    { messages: [user(TEXT), { role: 'assistant', content: [{ citationsContent: {} }] }, user(TEXT)] },
    undefined,
  ],
  ['a system text that is blank', { system: [{ text: ' ' }], ...ask() }, /is blank/],
  ['a document in the system text', { system: [pdf('a')], ...ask() }, /must set one of/],
])('%s', (_, body, problem, model = CLAUDE) => {
  const refused = converseProblem(body as JsonObject, model);
  if (problem === undefined) expect(refused).toBeUndefined();
  else expect(refused).toMatch(problem);
});
