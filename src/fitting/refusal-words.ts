/** What a refusal says, as places in its text, and the words that refusals have in common. */
import { wordSet } from '../shared/words.ts';

/** A part of a text. */
export interface TextSpan {
  readonly from: number;
  readonly to: number;
}

/** @param offset where the text begins in which the match was found */
export function spanOf(match: RegExpExecArray, offset = 0): TextSpan {
  const from = offset + match.index;
  return { from, to: from + match[0].length };
}

/** The sentence of a place. */
export function sentenceAt(text: string, at: number): TextSpan {
  const from = Math.max(text.lastIndexOf('. ', at), text.lastIndexOf('\n', at), 0);
  const length = text.slice(at).search(/\.\s|\n/);
  return { from, to: length < 0 ? text.length : at + length };
}

/** What a refusal says of the request. */
export interface Claim {
  /** Its sentence. */
  readonly sentence: TextSpan;
  /** What makes it: the names of the field, and the words that say something of it. */
  readonly core: readonly TextSpan[];
}

/** Words of many refusals, in lower case: two texts that share a run of them share nothing. */
const STOCK_WORDS: ReadonlySet<string> = wordSet(`
  a an and any are as at be been both but by can cannot could did do does doesn don each either for from has have if in into is isn it its
  may more must no not of on one only or other our please s should so such t than that the their then there these they this those to too
  use used uses using value values was were when which while will with without would you your accept accepted accepts allow allowed allows
  api argument arguments available body change check chat choose code completions currently default deprecated disabled does documentation
  enabled endpoint error exceed exceeds expected extra field fields following format found function functions got greater input inputs
  instead integer invalid key keys larger less level levels limit longer maximum message messages minimum model models name named names
  number options output parameter parameters permitted please positive property provide provided range received recognized reduce refer
  remove request requested requests require required response retry schema see sent set specify specified string supplied support
  supported supports supply system than too tokens tool tools try again turn type types unexpected unknown unrecognized unsupported update
  user valid version yet
`);

/** @param word in lower case */
export function isStockWord(word: string): boolean {
  return STOCK_WORDS.has(word);
}
