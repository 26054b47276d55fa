/** The recorded streams whose answers a client of Messages may get: how each is read plainly, and converted. */
import { messages } from '../../../src/clients/messages/client.ts';
import { openaiResponses } from '../../../src/dialects/openai-responses.ts';
import { PROVIDERS } from '../../../src/providers/index.ts';
import { COMPATIBLE, type Conversion } from '../../contract/convert.ts';
import { readUpstream } from '../../contract/plain-reading.ts';
import type { Reading } from '../../contract/reading.ts';
import { readAnthropic } from '../../contract/reading-anthropic.ts';
import { geminiEvents, geminiFrames, readGemini } from '../../contract/reading-gemini.ts';
import { readResponsesStream } from '../../contract/reading-responses.ts';
import { framedResponses, type Recording, readRecordings } from '../../contract/recordings.ts';

export interface Source {
  /** The upstream's bytes as text. */
  readonly text: string;
  /** What it says. */
  readonly read: Reading;
  readonly conversion: Conversion;
}

export const SOURCES = readRecordings().flatMap((recording) => {
  const source = sourceOf(recording);
  return source === null ? [] : [[recording.name, source] as const];
});

/** Null for what is no answer to a message: text completions, fill-in-the-middle, dialects that Weir does not read. */
function sourceOf(recording: Recording): Source | null {
  const { name, dialect, text } = recording;
  if (dialect === 'openai' && text.includes('"delta"') && !name.includes('--codestral-fim')) {
    const framed = framedLines(recording, (line) => `data: ${line}\n\n`, 'data: [DONE]\n\n');
    const maker = PROVIDERS.find(({ id }) => id === name.split('--')[0])?.id ?? COMPATIBLE;
    return { text: framed, read: readUpstream(framed, 'sse'), conversion: conversionOf(maker) };
  }
  if (dialect === 'anthropic') {
    const framed = framedLines(recording, (line) => `event: ${JSON.parse(line).type}\ndata: ${line}\n\n`, '');
    return { text: framed, read: readAnthropic(framed), conversion: conversionOf('anthropic') };
  }
  if (dialect === 'responses') {
    const framed = framedResponses(recording);
    const conversion = { ...conversionOf('openai'), dialect: openaiResponses };
    return { text: framed, read: readResponsesStream(framed, 'openai'), conversion };
  }
  if (dialect === 'gemini') {
    const framed = geminiFrames(recording);
    return { text: framed, read: readGemini(geminiEvents(framed)), conversion: conversionOf('gemini') };
  }
  return null;
}

/** Recordings with one JSON a line are framed again. */
function framedLines({ kind, text }: Recording, frame: (line: string) => string, end: string): string {
  if (kind === 'sse') return text;
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.map(frame).join('') + end;
}

function conversionOf(provider: string): Conversion {
  return {
    provider,
    route: 'chat',
    model: 'asked-for',
    usageChunk: true,
    openWriter: (options) => messages.openStream(null, options),
  };
}
