/** Describes why a text is not the expected JSON object or list: it is empty, invalid at a line and column, or of another kind. */

/** A longer text is not searched for the position of the error. */
const MAX_SEARCHED_CHARS = 1024 * 1024;

/**
 * Returns `is empty`, `is not valid JSON: the error is at line 2, column 7`, or `is a list`. The result contains nothing of the text,
 * which may be a secret.
 * @param value the parsed text, or undefined if it is not JSON
 */
export function jsonFault(text: string, value: unknown): string {
  if (value !== undefined) return `is ${kindOf(value)}`;
  if (text.trim() === '') return 'is empty';
  if (text.length > MAX_SEARCHED_CHARS) return 'is not valid JSON';
  const before = text.slice(0, errorIndex(text));
  const lines = before.split('\n');
  const at = `line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`;
  return before === text
    ? `is not valid JSON: it ends too early, at ${at}`
    : `is not valid JSON: the error is at ${at}`;
}

/** The kind of a JSON value, with an article. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'string') return 'a text';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

type ExpectedToken = 'value' | 'value or ]' | 'key' | 'key or }' | ':' | ', or end';

const SPACE = /[ \t\n\r]*/y;
const SCALAR = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** The index of the first character that is not valid JSON, or the text's length if it ends too early. */
function errorIndex(text: string): number {
  const closers: string[] = [];
  let expected: ExpectedToken = 'value';
  let at = 0;
  for (;;) {
    at = endOf(SPACE, text, at);
    const char = text[at];
    if (char === undefined) return text.length;
    if (char === closers.at(-1) && (expected === ', or end' || expected.endsWith(` ${char}`))) {
      closers.pop();
      expected = ', or end';
      at++;
    } else if (expected === ', or end') {
      if (char !== ',' || closers.length === 0) return at;
      expected = closers.at(-1) === '}' ? 'key' : 'value';
      at++;
    } else if (expected === ':') {
      if (char !== ':') return at;
      expected = 'value';
      at++;
    } else if (char === '"') {
      const string = readString(text, at + 1);
      if (!string.isValid) return string.at;
      expected = expected.startsWith('key') ? ':' : ', or end';
      at = string.at;
    } else if (expected.startsWith('key')) {
      return at;
    } else if (char === '{' || char === '[') {
      closers.push(char === '{' ? '}' : ']');
      expected = char === '{' ? 'key or }' : 'value or ]';
      at++;
    } else {
      const end = endOf(SCALAR, text, at);
      if (end === at) return at;
      expected = ', or end';
      at = end;
    }
  }
}

const ESCAPE = /["\\/bfnrt]|u[\da-fA-F]{4}/y;

/** @returns the index after the closing quote, or the index of the error */
function readString(text: string, from: number): { readonly at: number; readonly isValid: boolean } {
  let at = from;
  for (; at < text.length; at++) {
    const char = text[at] ?? '';
    if (char === '"') return { at: at + 1, isValid: true };
    if (char < ' ') break;
    if (char !== '\\') continue;
    const end = endOf(ESCAPE, text, at + 1);
    if (end === at + 1) return { at: end, isValid: false };
    at = end - 1;
  }
  return { at, isValid: false };
}

/** The end of the sticky pattern's match at `from`, or `from` if it does not match. */
function endOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : from;
}
