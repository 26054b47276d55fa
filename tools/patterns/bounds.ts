/** The patterns of `src` whose work grows with the text, and the length that their code allows before it applies them. */
import { MAX_REFUSAL_CHARS } from '../../src/canonical/refusal.ts';
import { MAX_ERROR_MESSAGE_CHARS, MAX_RESPONSE_BYTES } from '../../src/shared/limits.ts';
import { findPatterns, isBounded, longestMs, type Pattern } from './judge.ts';

interface Bound {
  /** A file of `src`, or the folder of several. */
  readonly path: string;
  /** The longest text of its patterns. */
  readonly chars: number;
  /** Where the length is limited. */
  readonly by: string;
}

/** The longest text that the analyser's doubt is measured with, where nothing but the size of a body limits it. */
const LARGEST = 1024 * 1024;

const BOUNDS: readonly Bound[] = [
  { path: 'canonical/upstream-error.ts', chars: MAX_ERROR_MESSAGE_CHARS, by: 'sanitize, sanitizeCode' },
  { path: 'upstream/provider-message.ts', chars: MAX_REFUSAL_CHARS, by: 'classifyRefusal' },
  { path: 'upstream/errors.ts', chars: 4096, by: 'isAboutKey, readRefusal' },
  { path: 'fitting/api-statements.ts', chars: MAX_REFUSAL_CHARS, by: 'classifyRefusal' },
  { path: 'fitting/refusal-numbers.ts', chars: MAX_REFUSAL_CHARS, by: 'classifyRefusal' },
  { path: 'fitting/statements.ts', chars: MAX_REFUSAL_CHARS, by: 'readStatements' },
  // With the code before the message.
  { path: 'providers/', chars: MAX_ERROR_MESSAGE_CHARS + 130, by: 'refusalKind' },
  { path: 'protocols/anthropic-messages/client-errors.ts', chars: MAX_ERROR_MESSAGE_CHARS, by: 'messageOf' },
  { path: 'attribution/attribution.ts', chars: 16 * 1024, by: 'readName' },
  { path: 'completion/embeddings-response.ts', chars: 4096, by: 'EDGE_BYTES' },
  { path: 'stream/fast-path/template.ts', chars: 4096 + 512, by: 'MAX_LEARNED_CHARS' },
  { path: 'upstream/fetch.ts', chars: 64, by: 'MAX_QUANTITY_CHARS' },
  { path: 'credentials/aws.ts', chars: 2000, by: 'MAX_REASON_CHARS' },
  { path: 'credentials/google.ts', chars: 16 * 1024, by: 'a setting of the deployment, MAX_REASON_CHARS' },
  { path: 'credentials/tokens.ts', chars: 2000, by: 'MAX_REASON_CHARS' },
  { path: 'settings/auth.ts', chars: 1024, by: 'a setting of the deployment' },
  { path: 'settings/settings.ts', chars: 1024, by: 'the name of a binding of the deployment' },
  { path: 'attribution/settings.ts', chars: 1024, by: 'a setting of the deployment' },
  // Linear, which the analyser does not see: each start of a match is after the end of the last one.
  {
    path: 'protocols/gemini/embeddings.ts',
    chars: Math.min(LARGEST, MAX_RESPONSE_BYTES),
    by: 'MAX_RESPONSE_BYTES',
  },
  { path: 'protocols/gemini/request-contents.ts', chars: LARGEST, by: 'the size of a body' },
];

/** The analyser does not count the work of lookaheads, so patterns without a row are measured, too, with a text of this length. */
const LONG = 32 * 1024;

const ADVICE =
  'Anchor it, limit its repetitions, or limit the text and add the file to tools/patterns/bounds.ts';

/** For one text. Other streams of the isolate wait as long. */
const MAX_MS = 25;

interface SourceText {
  /** From `src` on. */
  readonly path: string;
  readonly text: string;
}

function isFast(pattern: Pattern, chars: number): boolean {
  return longestMs(pattern, chars, MAX_MS) <= MAX_MS;
}

/**
 * One line for each pattern whose work is not bounded, and for each row of `BOUNDS` that none needs.
 * @param long the length of the text for patterns without a row
 */
export function problemsOf(sources: readonly SourceText[], bounds = BOUNDS, long = LONG): readonly string[] {
  const used = new Set<Bound>();
  const problems: string[] = [];
  for (const { path, text } of sources) {
    for (const pattern of findPatterns(path, text)) {
      const place = `src/${path}:${pattern.line} ${pattern.source ?? 'a pattern built at run time'}`;
      const row = bounds.find((bound) => path.startsWith(bound.path));
      const isSafe = isBounded(pattern);
      if (!isSafe && row !== undefined) used.add(row);
      if (!isSafe && row === undefined)
        problems.push(`${place}: its backtracks grow with the text. ${ADVICE}`);
      else if (!isFast(pattern, row?.chars ?? long))
        problems.push(`${place}: more than ${MAX_MS} ms for ${row?.chars ?? long} characters. ${ADVICE}`);
    }
  }
  const unused = bounds.filter((bound) => !used.has(bound));
  return [
    ...problems,
    ...unused.map(({ path }) => `tools/patterns/bounds.ts: no pattern needs the row of ${path}`),
  ];
}
