/** The recorded provider streams beside this repository: where they are, and which this suite reads as what. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export interface Recording {
  name: string;
  kind: 'sse' | 'jsonl';
  text: string;
}

const FOLDER = fileURLToPath(new URL('../../../shared/streams/', import.meta.url).href);

/** What a test's name ends in, so that a run without the recordings says that it left something out. */
export const recordingsNote = existsSync(FOLDER) ? '' : ' (skipped: ../shared/streams is not here)';

/** Every recorded stream, or none where the folder is not there. */
export function readRecordings(): Recording[] {
  if (!existsSync(FOLDER)) return [];
  const names = readdirSync(FOLDER).filter((name) => /\.(?:sse|jsonl)$/.test(name));
  return names.sort().map((name) => ({
    name,
    kind: name.endsWith('.jsonl') ? 'jsonl' : 'sse',
    text: readFileSync(`${FOLDER}${name}`, 'utf8'),
  }));
}

const ANTHROPIC = 'Anthropic Messages events (message_start, content_block_delta)';
const COHERE = 'Cohere v2 chat events (content-delta, tool-call-delta)';
const GEMINI = 'Gemini generateContent (candidates, usageMetadata)';
const RESPONSES = 'OpenAI Responses events (response.output_text.delta)';

/** Recordings whose dialect is not OpenAI's chat or completions, each with the dialect that it is. */
export const OTHER_DIALECTS: ReadonlyMap<string, string> = new Map([
  ['anthropic--parallel-tools.sse', ANTHROPIC],
  ['anthropic--stop-sequence-empty.sse', ANTHROPIC],
  ['anthropic--text-padded-json.sse', ANTHROPIC],
  ['anthropic--text.sse', ANTHROPIC],
  ['anthropic--thinking.sse', ANTHROPIC],
  ['anthropic--tool-use.sse', ANTHROPIC],
  ['cohere--v2-text.sse', COHERE],
  ['cohere--v2-tool-calls.sse', COHERE],
  ['deepseek--responses-api-text.sse', RESPONSES],
  ['gemini--text-crlf.sse', GEMINI],
  ['gemini--thinking-tool.sse', GEMINI],
  ['gemini--tool-call-signature.sse', GEMINI],
  ['lmstudio--responses-tool-call.jsonl', RESPONSES],
  ['ollama--native-ndjson-chat.jsonl', 'Ollama /api/chat lines (message, done)'],
  ['openai--responses-error-in-stream.jsonl', RESPONSES],
  ['openai--responses-text.sse', RESPONSES],
  ['openai--responses-tool-call.sse', RESPONSES],
  ['tgi--native-generate.sse', 'TGI generate events (token, generated_text)'],
  ['xai--responses-text.sse', RESPONSES],
]);

/** OpenAI-shaped recordings that hold no content, each with the reason. */
export const EMPTY_RECORDINGS: ReadonlyMap<string, string> = new Map([
  ['deepseek--length-before-output.sse', 'the length limit came before the first token'],
  ['mistral--length-no-content.sse', 'the length limit came before the first token'],
  ['openai--reasoning-budget-spent.sse', 'hidden reasoning spent the whole length'],
  ['tgi--error-frame-nospace.sse', 'one error frame, whose error is a text, and nothing else'],
]);

export function isOpenAiShaped(fileName: string): boolean {
  return !OTHER_DIALECTS.has(fileName);
}
