/** Reads the ranges of numbers that a refusal names: each number whole and with its unit, or not at all (Z2). */
import { wordSet } from '../shared/words.ts';
import { sentenceAt, type TextSpan } from './refusal-words.ts';

/** A range in a text, with its words. A single allowed value is a range of one. */
export interface NamedRange extends TextSpan {
  readonly min: number | null;
  readonly max: number | null;
  /** Whether both bounds are whole numbers. Else they are decimals, which no limit of tokens is. */
  readonly isWhole: boolean;
  /** Whether the text says that it counts tokens. */
  readonly countsTokens: boolean;
}

/** A number of a text with its unit, without the quotation mark or bracket before it. */
interface NumberToken extends TextSpan {
  /** Null: it is not understood, such as `2^15`. */
  readonly value: number | null;
  readonly isWhole: boolean;
}

/** Words before a number that say what it is, and behind it. */
const WORDS_CHARS = 160;

/** Numbers of a text that are read. */
const MAX_NUMBERS = 64;

/** A name such as `gpt-4o` has no number, and `16 384` is another one than its last digits. */
const NUMBER = /(?<![\w^$#*/~+\u2248\xd7-]|[^.]\.|\d[ \xa0\u202f\u2009])-?\d+(?:[.,_'\u2019]\d+)*/g;

/** The numbers of a text that no letter, sign or unit follows that is not understood. */
function numbersOf(text: string): readonly NumberToken[] {
  return [...text.matchAll(NUMBER)].slice(0, MAX_NUMBERS).map(({ index: from, 0: digits }) => {
    const digitsEnd = from + digits.length;
    const [unit = ''] = /^\s?[km](?![\w^])/i.exec(text.slice(digitsEnd, digitsEnd + 3)) ?? [];
    const to = digitsEnd + unit.length;
    const isEnded = /^(?:$|[\s.,;:!?)\]}"'`>|\u2019\u201d]|-tokens?\b)/.test(text.slice(to, to + 8));
    const value = isEnded ? readValue(digits, unit.trim()) : null;
    return { from, to, value, isWhole: value !== null && Number.isInteger(value) && !isDecimal(digits) };
  });
}

const WHOLE = /^-?\d{1,12}$/;
/** `8,192` and `8_192`, and not `8.192`, which is another number elsewhere. */
const GROUPED = /^\d{1,3}([,_'\u2019])\d{3}(?:\1\d{3}){0,3}$/;
const DECIMAL = /^-?\d{1,9}\.\d{1,9}$/;

function readValue(digits: string, unit: string): number | null {
  if (unit !== '') return /^\d{1,4}$/.test(digits) ? Number(digits) * (/k/i.test(unit) ? 1000 : 1e6) : null;
  if (WHOLE.test(digits) || DECIMAL.test(digits)) return Number(digits);
  return GROUPED.test(digits) ? Number(digits.replace(/\D/g, '')) : null;
}

/** `1.0` is whole. `8.000` may be eight thousand. */
function isDecimal(digits: string): boolean {
  return digits.includes('.') && !/\.0{1,2}$/.test(digits);
}

/**
 * The most. tailcallhq/forgecode#1185, 2025-07-22; anthropics/claude-code#24451, 2026-02-09. Each pattern ends where
 * the number begins, behind a quotation mark or a bracket.
 */
const AT_MOST =
  /(?:(?:less|smaller|lower|fewer) than or equal to|[<=]=|=<|\u2264|at most|up to|(?:cannot|can't|can not|must not|may not|should not) (?:exceed|be (?:set )?(?:greater|larger|more|higher|bigger|above|over)(?: than)?)|(?:no|not) (?:more|greater|larger|higher|bigger) than|limit(?: for (?:this|the) model)?(?: (?:is|of)|:)|(?:over|above) the (?:limit|maximum)(?: of)?|limited to|capped at|exceeds (?:the )?(?:model's |model )?(?:limit|maximum)(?: of)?)(?: the)?(?: (?:limit|maximum|value) of)?\s{0,2}["'`(]{0,2}$/i;
const BELOW = /(?:\b(?:less|lower|smaller|fewer) than|\b(?:be|is) <)\s{0,2}["'`(]{0,2}$/i;
const BE = /\b(?:be|is|to|of)\s{0,2}["'`(]{0,2}$/i;
const OR_LESS = /^(?: tokens?)?(?: or (?:less|fewer|lower|smaller|below)| (?:at most|max(?:imum)?))\b/i;
/** "128001 > 64000, which is the maximum allowed number of output tokens". */
const ABOVE = /\d > ["'`]?$/;
const IS_MAXIMUM = /^,? which is the max/i;

/** "Input should be greater than or equal to 1024": themaximalist/llm.js#30, 2026-08-19. */
const AT_LEAST =
  /(?:(?:greater|larger|more|higher) than or equal to|>=|=>|\u2265|at least|(?:no|not) (?:less|lower|smaller|fewer) than|minimum(?: allowed)?(?: value)? (?:is|of))\s{0,2}["'`(]{0,2}$/i;

/**
 * "Only the default (1) value is supported": QwenLM/qwen-code#921, 2025-09-15; "only 1 is allowed":
 * countbot-ai/CountBot#61, 2026-04-21.
 */
const ONLY = /\bonly (?:the )?(?:default )?(?:value )?(?:of )?(?:[\w.]{1,64} ?= ?)?["'`(]{0,2}$/i;
const IS_ALLOWED =
  /^["'`)]{0,2}(?: value)? (?:is|are) (?:currently )?(?:supported|allowed|accepted|valid|permitted|available)\b/i;
const EXACTLY =
  /(?:\b(?:may|must|can|should) (?:only )?be (?:set to|equal to|exactly|fixed (?:at|to))|\bmust (?:always )?(?:be|equal)|\bfixed (?:at|to)|\bonly (?:supports?|accepts?|allows?|permits?)(?: the)?(?: default)?(?: value)?(?: of)?(?: [\w.]{1,64} ?=)?)\s{0,2}["'`(]{0,2}$/i;
/** Another value follows. */
const OR_ANOTHER = /^["'`)]{0,2}(?:,? (?:or|and|to|through)\b|,? ?-? ?["'`(]?\d)/i;

/** Ranges: "[1, 8192]", mnfst/llm-gateway#1177, 2026-03-17; "from 1 (inclusive) to 8193 (exclusive)", Vertex AI. */
const RANGE = /\b(?:between|from|within)\s?["'`([]{0,2}$|\brange\b[^\n]{0,80}$|\bin ?[[(]$/i;
const RANGE_JOINER =
  /^["'`]?(?: \((?:inclusive|exclusive)\))?\s{0,2}(?:,|;|to|and|-|\u2013|\.\.|\.\.\.|through)\s{0,2}["'`]?$/i;
/** Both bounds without a space between, in their brackets. */
const BRACKETED = /^(-?\d{1,9}(?:\.\d{1,9})?),(\d{1,12}(?:\.\d{1,9})?)$/;

/** "The maximum output tokens for gpt-4o is 16384". */
const MAXIMUM = /\bmax(?:imum)?((?: [^\s]{1,80}){0,10}?)( (?:is|are|of)|:| ?=)?\s{0,2}["'`(]{0,2}$/i;
const MAXIMUM_WORDS = wordSet(`
  allowed permitted supported possible number amount value of for the this model output completion
  generated new response tokens token limit
`);

/** What may follow a number that counts no other thing. */
const FOLLOWING = wordSet(`
  for with in on by when while whereas but and or which instead given got you your is are was were if
  because as please try at inclusive exclusive received requested provided the this it value allowed
  supported permitted accepted valid since so not set use reduce here currently only max maximum
`);
const TOKENS = /^[\s-](?:(?:output|completion|generated|generation|new|response)[\s-]){0,2}tokens?\b/i;
/** The number counts something else, or tokens of the prompt, or over time. */
const OF_OTHERS =
  /^(?: (?:per|each|every|a (?:minute|day|second|month)|total|input|context|prompt)\b|\/| (?:of|in|for) (?:the |your |an? )?(?:inputs?|prompts?|contexts?|messages?|images?|tools?|total|parallel|row|list)\b)/i;
const AND_NUMBER = /^\s?(?:,|or|and)\s{1,2}["'`(]?\d/;
const IN_BRACKETS = /^\s\((?:inclusive|exclusive|got|given|received|requested|was|you|current|\d|max)/i;

/** Whether what follows a number lets it count tokens or nothing in particular; null: it counts something else. */
function countedAfter(rest: string): 'tokens' | 'unnamed' | null {
  const text = rest.replace(/^["'`)\]*]{1,3}/, '');
  if (AND_NUMBER.test(text)) return null;
  const [tokens] = TOKENS.exec(text) ?? [];
  if (tokens !== undefined) return OF_OTHERS.test(text.slice(tokens.length)) ? null : 'tokens';
  if (OF_OTHERS.test(text)) return null;
  if (/^(?:$|\n|[.,;:!?}>|]|\s?$)/.test(text) || IN_BRACKETS.test(text) || /^\s[-\u2013\u2014|]\s/.test(text))
    return 'unnamed';
  const [, word = ''] = /^\s([A-Za-z]{1,20})/.exec(text) ?? [];
  return FOLLOWING.has(word.toLowerCase()) ? 'unnamed' : null;
}

/** Whether a word is the name of a field of the request. */
type IsField = (word: string) => boolean;

/** The ranges in a text, in its order. What is not understood is left out. */
export function rangesIn(text: string, isField: IsField): readonly NamedRange[] {
  const numbers = numbersOf(text);
  return numbers.flatMap((number, i) => {
    const range = bracketedRange(text, number) ?? rangeOf(text, number, numbers[i - 1], isField);
    return range === null ? [] : [range];
  });
}

/** `[1,8192]` */
function bracketedRange(text: string, { from, to }: NumberToken): NamedRange | null {
  const bounds = BRACKETED.exec(text.slice(from, to));
  const opening = text[from - 1];
  const closing = text[to];
  if (bounds === null || opening !== '[' || closing !== ']' || !RANGE.test(before(text, from))) return null;
  const [, min = '', max = ''] = bounds;
  return { from, to, min: Number(min), max: Number(max), isWhole: !max.includes('.'), countsTokens: false };
}

function rangeOf(
  text: string,
  number: NumberToken,
  previous: NumberToken | undefined,
  isField: IsField,
): NamedRange | null {
  const { from: start, to, value, isWhole } = number;
  if (value === null) return null;
  const words = before(text, start);
  const rest = text.slice(to, to + WORDS_CHARS);
  const counted = countedAfter(rest);
  if (counted === null) return null;
  const countsTokens = counted === 'tokens';
  const within = (min: number | null, max: number | null, from = start): NamedRange => {
    return { from, to, min, max, isWhole, countsTokens };
  };
  if (previous !== undefined && RANGE_JOINER.test(text.slice(previous.to, start))) {
    if (previous.value === null || !RANGE.test(before(text, previous.from))) return null;
    const isHalfOpen =
      /^[\s"'`]{0,2}\(?exclusive/i.test(rest) || (text[previous.from - 1] === '[' && rest[0] === ')');
    if (isHalfOpen && !isWhole) return null;
    return within(previous.value, isHalfOpen ? value - 1 : value, previous.from);
  }
  /** From the words that name the bound. */
  const bound = (pattern: RegExp, min: number | null, max: number | null): NamedRange | null => {
    const match = pattern.exec(words);
    return match === null ? null : within(min, max, start - words.length + match.index);
  };
  const least = bound(AT_LEAST, value, null);
  if (least !== null) return least;
  const most =
    bound(AT_MOST, null, value) ?? (isMaximum(words, isField) ? bound(MAXIMUM, null, value) : null);
  if (most !== null) return most;
  if (IS_MAXIMUM.test(rest) && ABOVE.test(words)) return bound(ABOVE, null, value);
  if (BELOW.test(words)) return isWhole ? bound(BELOW, null, value - 1) : null;
  if (OR_LESS.test(rest) && BE.test(words)) return bound(BE, null, value);
  if (OR_ANOTHER.test(rest)) return null;
  return (IS_ALLOWED.test(rest) ? bound(ONLY, value, value) : null) ?? bound(EXACTLY, value, value);
}

/** What stands before a number in its sentence. */
function before(text: string, start: number): string {
  return text.slice(Math.max(sentenceAt(text, start).from, start - WORDS_CHARS), start);
}

function isMaximum(words: string, isField: IsField): boolean {
  const maximum = MAXIMUM.exec(words);
  if (maximum === null) return false;
  const [, list = '', verb] = maximum;
  const names = list.split(' ').filter((word) => word !== '');
  return names.every((word, i) => {
    const name = word.replace(/^["'`(]+|["'`):]+$/g, '');
    if (MAXIMUM_WORDS.has(name.toLowerCase()) || isField(name)) return true;
    // The name of a model.
    return verb !== undefined && ['for', 'model'].includes(names[i - 1]?.toLowerCase() ?? '');
  });
}
