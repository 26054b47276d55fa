/** The recorded streams that a client of Messages can receive, each with a reference reading and its conversion. */
import { messages } from '../../../src/protocols/anthropic-messages/client.ts';
import { openaiResponses } from '../../../src/protocols/openai-responses/upstream-reader.ts';
import type { Content } from '../../../tools/conformance/contract/content.ts';
import { type Conversion, recordedProvider } from '../../contract/convert.ts';
import { framed, type Recording, readRecordings } from '../../contract/recordings.ts';
import { readAnthropic } from '../../contract/reference-anthropic.ts';
import { geminiEvents, readGemini } from '../../contract/reference-gemini.ts';
import { readUpstream } from '../../contract/reference-reader.ts';
import { readResponsesStream } from '../../contract/reference-responses.ts';

export interface Source {
  /** The upstream's bytes as text. */
  readonly text: string;
  /** Its content by the reference reader. */
  readonly read: Content;
  readonly conversion: Conversion;
}

export const SOURCES = readRecordings().flatMap((recording) => {
  const source = sourceOf(recording);
  return source === null ? [] : [[recording.name, source] as const];
});

/** Null for text completions, fill-in-the-middle, and protocols that Weir does not read. */
function sourceOf(recording: Recording): Source | null {
  const { name, protocol } = recording;
  const text = framed(recording);
  if (protocol === 'openai' && text.includes('"delta"') && !name.includes('--codestral-fim')) {
    const provider = recordedProvider(name);
    return { text, read: readUpstream(text, 'sse'), conversion: conversionOf(provider) };
  }
  if (protocol === 'anthropic') {
    return { text, read: readAnthropic(text), conversion: conversionOf('anthropic') };
  }
  if (protocol === 'responses') {
    const conversion = { ...conversionOf('openai'), protocol: openaiResponses };
    return { text, read: readResponsesStream(text, 'openai'), conversion };
  }
  if (protocol === 'gemini') {
    return { text, read: readGemini(geminiEvents(text)), conversion: conversionOf('gemini') };
  }
  return null;
}

function conversionOf(provider: string): Conversion {
  return {
    provider,
    route: 'chat',
    model: 'requested',
    usageChunk: true,
    openWriter: (options) => messages.streamWriter(null, options),
  };
}
