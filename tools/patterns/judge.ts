/** Finds the regular expressions of TypeScript sources and judges how much work they can cause. */
import { parseSync } from 'oxc-parser';
import { isSafePattern } from 'redos-detector';

export interface Pattern {
  /** From 1. */
  readonly line: number;
  /** Null: it is built from parts that are not in the source. */
  readonly source: string | null;
  readonly flags: string;
}

/** Stands for an inserted name in a template such as `new RegExp(`"${key}"`)`. */
const INSERTED = 'name';

interface Node {
  readonly type: string;
  readonly start: number;
  readonly [field: string]: unknown;
}

/** All regular expressions of a source: literals, and calls of `RegExp` and `lazyPattern`. */
export function findPatterns(path: string, text: string): readonly Pattern[] {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const patterns: Pattern[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) visit(item);
    if (!isNode(value)) return;
    const found = patternOf(value);
    if (found !== null) patterns.push({ ...found, line: text.slice(0, value.start).split('\n').length });
    else for (const field of Object.values(value)) visit(field);
  };
  visit(program);
  return patterns;
}

function patternOf(node: Node): Omit<Pattern, 'line'> | null {
  const { type, regex, callee, arguments: given } = node;
  if (type === 'Literal' && isRegex(regex)) return { source: regex.pattern, flags: regex.flags };
  const isCall = type === 'NewExpression' || type === 'CallExpression';
  if (!isCall || !isNode(callee) || !isMaker(callee) || !Array.isArray(given)) return null;
  const [source = null, flags = ''] = given.map(textOf);
  return { source, flags: flags ?? '' };
}

/** `lazyPattern` is in src/shared/lazy-pattern.ts. */
function isMaker({ name }: Node): boolean {
  return name === 'RegExp' || name === 'lazyPattern';
}

/** The text of a string or of a template, with a word in place of each insertion. */
function textOf(node: unknown): string | null {
  if (!isNode(node)) return null;
  if (node.type === 'Literal' && typeof node.value === 'string') return node.value;
  if (node.type !== 'TemplateLiteral' || !Array.isArray(node.quasis)) return null;
  return node.quasis.map((quasi: { value: { cooked: string } }) => quasi.value.cooked).join(INSERTED);
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value;
}

function isRegex(value: unknown): value is { readonly pattern: string; readonly flags: string } {
  return typeof value === 'object' && value !== null && 'pattern' in value;
}

/** The most backtracks for a text of any length. Patterns of `src` that have a bound have 21 at most. */
const MAX_BACKTRACKS = 32;
/** The analyser gives up after this many steps: the pattern is then treated as one without a bound. */
const MAX_STEPS = 2000;

/** Whether the backtracks have a small bound that does not depend on the length of the text. */
export function isBounded({ source, flags }: Pattern): boolean {
  if (source === null) return false;
  const result = isSafePattern(anchored(source, flags), {
    caseInsensitive: flags.includes('i'),
    unicode: flags.includes('u') || flags.includes('v'),
    dotAll: flags.includes('s'),
    multiLine: flags.includes('m'),
    maxScore: MAX_BACKTRACKS,
    maxSteps: MAX_STEPS,
  });
  return result.safe;
}

/** A sticky pattern is tried at one place only. */
function anchored(source: string, flags: string): string {
  return flags.includes('y') ? `^(?:${source})` : source;
}

/** Characters of the classes that patterns use, and what separates them. */
const COMMON = [...'a0A _-./:@"\'\\={[,\n\t'];
/** Ends that make a match fail late. */
const ENDS = ['', '!', '\u0000'];

/**
 * The longest CPU time in ms that the pattern takes for a text of this length, over repetitions of its own words and of common characters,
 * with its beginning before them and an end that does not match.
 * @param enoughMs a longer time ends the measurement
 */
export function longestMs({ source, flags }: Pattern, chars: number, enoughMs = 1000): number {
  if (source === null) return Number.POSITIVE_INFINITY;
  const pattern = new RegExp(anchored(source, flags), flags.replace(/[gy]/g, ''));
  const words = [...new Set(wordsOf(source))].slice(0, 8);
  const pieces = [
    ...COMMON,
    ...words,
    ...words.map((word) => `${word} `),
    ...words.map((word) => `${word}a`),
  ];
  let longest = 0;
  for (const piece of pieces) {
    for (const head of ['', ...words.slice(0, 3)]) {
      const body = piece.repeat(Math.ceil(chars / piece.length));
      for (const end of ENDS) {
        const text = (head + body).slice(0, chars - end.length) + end;
        const ms = msOf(pattern, text, enoughMs);
        longest = Math.max(longest, ms);
        if (ms > enoughMs) return longest;
      }
    }
  }
  return longest;
}

/** Quadratic work of about `REFERENCE_MS` on an idle machine. */
const REFERENCE = { pattern: /a+!/, text: 'a'.repeat(7600) };
const REFERENCE_MS = 25;
const MAX_RUNS = 5;

/**
 * The machine may be busy or slow. So a run that seems slow is repeated: its CPU time is compared with that of the
 * reference beside it, and the smallest ratio counts.
 */
function msOf(pattern: RegExp, text: string, enoughMs: number): number {
  const from = performance.now();
  pattern.test(text);
  let shortest = performance.now() - from;
  for (let run = 0; run < MAX_RUNS && shortest > enoughMs; run++) {
    const ratio = cpuMsOf(pattern, text) / cpuMsOf(REFERENCE.pattern, REFERENCE.text);
    shortest = Math.min(shortest, ratio * REFERENCE_MS);
  }
  return shortest;
}

/** Without the time in which the thread waits for a processor. */
function cpuMsOf(pattern: RegExp, text: string): number {
  const from = process.threadCpuUsage();
  pattern.test(text);
  const { user, system } = process.threadCpuUsage(from);
  return Math.max(1, user + system) / 1000;
}

/** The literal words of a pattern, without escapes. */
function wordsOf(source: string): readonly string[] {
  return (
    source
      .replace(/\\[a-zA-Z]/g, ' ')
      .replace(/\\(.)/g, '$1')
      .match(/[\w"'/:=<{-][\w"'/:=<{ -]*/g) ?? []
  );
}
