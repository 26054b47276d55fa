/** The recorded provider streams next to this repository: their folder and their protocols. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The wire protocol of a recording. `openai` includes chat, legacy completions, fill-in-the-middle and agents. */
type RecordedProtocol = 'openai' | 'anthropic' | 'gemini' | 'responses' | 'cohere' | 'ollama' | 'tgi';

export interface Recording {
  name: string;
  kind: 'sse' | 'jsonl';
  protocol: RecordedProtocol;
  text: string;
}

const FOLDER = fileURLToPath(new URL('../../../shared/streams/', import.meta.url).href);

/** The end of a test's name, so that a run without the recordings reports what it skipped. */
export const recordingsNote = existsSync(FOLDER) ? '' : ' (skipped: ../shared/streams is not here)';

/** The protocol by the endpoint in INDEX.md, so that a new recording needs no entry here. */
const PROTOCOLS: readonly (readonly [endpoint: RegExp, protocol: RecordedProtocol])[] = [
  [/\/completions$|\/v1\/chat$/, 'openai'],
  [/\/messages$|:streamRawPredict$/, 'anthropic'],
  [/:streamGenerateContent/, 'gemini'],
  [/\/responses$/, 'responses'],
  [/\/v2\/chat$/, 'cohere'],
  [/\/api\/chat$/, 'ollama'],
  [/generate \(SSE\)$/, 'tgi'],
];

/** Every recorded stream, or none if the folder is missing. */
export function readRecordings(): Recording[] {
  if (!existsSync(FOLDER)) return [];
  const endpoints = readEndpoints(readFileSync(`${FOLDER}INDEX.md`, 'utf8'));
  const names = readdirSync(FOLDER).filter((name) => /\.(?:sse|jsonl)$/.test(name));
  return names.sort().map((name) => ({
    name,
    kind: name.endsWith('.jsonl') ? 'jsonl' : 'sse',
    protocol: protocolOf(name, endpoints.get(name)),
    text: readFileSync(`${FOLDER}${name}`, 'utf8'),
  }));
}

/** The stream as the provider sends it. A recording with one JSON object a line is framed again. */
export function framed({ kind, protocol, text }: Recording): string {
  if (kind === 'sse') return text;
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  if (protocol === 'openai') lines.push('[DONE]');
  return lines.map((line) => frameOf(protocol, line)).join('');
}

function frameOf(protocol: RecordedProtocol, json: string): string {
  if (protocol === 'gemini') return `data: ${json}\r\n\r\n`;
  const isNamed = protocol === 'anthropic' || protocol === 'responses';
  return `${isNamed ? `event: ${JSON.parse(json).type}\n` : ''}data: ${json}\n\n`;
}

/** TGI's chat uses the same object name, but its chunks have deltas. */
export function isTextCompletion({ text }: Recording): boolean {
  return /"object":\s*"text_completion"/.test(text) && !text.includes('"delta"');
}

/** The third column of the table of files, by the first. */
function readEndpoints(index: string): ReadonlyMap<string, string> {
  const rows = index.split('\n').map((line) => line.split('|').map((cell) => cell.trim()));
  return new Map(rows.map(([, file = '', , endpoint = '']) => [file, endpoint] as const));
}

function protocolOf(name: string, endpoint: string | undefined): RecordedProtocol {
  const found = PROTOCOLS.find(([pattern]) => pattern.test(endpoint ?? ''));
  if (found === undefined) throw new Error(`INDEX.md names no known endpoint for ${name}: ${endpoint}`);
  return found[1];
}

/** OpenAI-shaped recordings without content, each with the reason. */
export const EMPTY_RECORDINGS: ReadonlyMap<string, string> = new Map([
  ['deepseek--length-before-output.sse', 'the length limit came before the first token'],
  ['mistral--length-no-content.sse', 'the length limit came before the first token'],
  ['openai--reasoning-budget-spent.sse', 'hidden reasoning spent the whole length'],
]);
