/**
 * Reads from a provider's refusal which field of the request it is about, and what it says of it (Z2). The table has phrases, because
 * hosts repeat each other's: OpenAI's sentences come from Azure, Copilot and Groq, pydantic's from Mistral, Fireworks and vLLM.
 */
import { MAX_REFUSAL_CHARS } from '../canonical/refusal.ts';
import { isLevel } from '../facts/efforts.ts';
import { fieldsBy } from '../facts/fields.ts';
import { fingerprint } from '../shared/fingerprint.ts';
import { type JsonObject, LARGE_OBJECT_MEMBERS } from '../shared/json.ts';
import { wordSet } from '../shared/words.ts';
import { classOf, fieldValue, isChangeable, LIMIT_FIELDS, SentFields } from './body-fields.ts';
import {
  asksForThinking,
  type Condition,
  forcesTool,
  meets,
  turnsThinkingOff,
  VALIDATING_KEYWORDS,
  valueFingerprint,
} from './fit.ts';
import { type NamedRange, rangesIn } from './refusal-numbers.ts';
import { type Claim, sentenceAt, spanOf, type TextSpan } from './refusal-words.ts';
import { type Finding, hasKnownNames, subjectOf } from './rows.ts';

/** What a refusal says of one field. */
export interface Statement {
  readonly finding: Finding;
  /** What else must hold for the refusal, because it says so. */
  readonly conditions: readonly Condition[];
  /** Where the refusal says it. */
  readonly claim: Claim;
  /** Whether later requests begin with the change. */
  readonly isRemembered: boolean;
}

interface FieldRefusal {
  readonly message: string;
  readonly code: string;
  /** The field that the provider names beside its message. */
  readonly field: string | undefined;
}

interface SentRequest {
  /** As it was sent. */
  readonly body: JsonObject;
  readonly betas: readonly string[];
}

/** A phrase of refusals, and where the names of the fields are. */
interface Phrase {
  readonly pattern: RegExp;
  readonly names: 'before' | 'after';
  /** The host does not know the field, and so no model takes it. */
  readonly isUnknown: boolean;
}

/** Above each are threads with the phrase, and their dates. */
const PHRASES: readonly Phrase[] = [
  // appatalks/eva-agent#83, 2025-03-31; Azure/azure-rest-api-specs#29545, 2024-06-21; Laisky/one-api#60, 2025-04-20
  {
    pattern:
      /\b(?:bad|unsupported|unrecognized|unrecognised|unknown|unexpected|unpermitted|extra|invalid) (?:request )?(?:(?:keyword )?argument|parameter|param|field|property|key|name|attribute|option)(?:\(s\)|s)?(?![\w-])/gi,
    names: 'after',
    isUnknown: true,
  },
  // fanenr/chatbot#21, 2024-12-14; BerriAI/litellm#32273, 2026-07-06; OpenRouterTeam/openrouter-examples#71, 2026-03-23
  {
    pattern:
      /\b(?:(?:is|are)(?: currently| also)?(?: not|n['\u2019]t) (?:yet |currently )?(?:supported|permitted|allowed|enabled|recognized|accepted|available|implemented|configurable|adjustable|a (?:valid|supported|known|recognized) (?:field|parameter|argument|property|option))|(?:is|are) (?:currently |also )?(?:unsupported|deprecated|unrecognized|unavailable|no longer (?:supported|accepted|available|allowed|permitted))|has been (?:removed|deprecated|disabled)|(?:cannot|can't|can not) be (?:set|changed|configured|modified|adjusted|customized)|(?<=[\w'\x22`]) not (?:supported|configurable))\b/gi,
    names: 'before',
    isUnknown: false,
  },
  // anthropics/claude-code#30795, 2026-03-04; Gitlawb/openclaude#1371, 2026-05-26; github/copilot-cli#3394, 2026-05-19
  {
    pattern:
      /\b(?:does not|doesn't|do not|don't|cannot|can't) (?:currently |yet )?(?:support|accept|allow|recognize)\b/gi,
    names: 'after',
    isUnknown: false,
  },
  // OpenAI, its form of a field that needs another
  {
    pattern: /\bis only (?:allowed|supported|permitted|valid|available) (?:when|with|if|for)\b/gi,
    names: 'before',
    isUnknown: false,
  },
  // Aider-AI/aider#4404, 2025-08-04; mistralai/platform-docs-public#7, 2024-01-24
  {
    pattern: /: extra inputs? (?:is|are) not permitted\b/gi,
    names: 'before',
    isUnknown: true,
  },
  // FlowiseAI/Flowise#2866, 2024-07-24
  {
    pattern: /\bextra inputs? (?:is|are) not permitted, field:/gi,
    names: 'after',
    isUnknown: true,
  },
  // ogx-ai/ogx#1102, 2025-02-14
  {
    pattern: /\b(?:extraneous|unrecognized) key\b/gi,
    names: 'after',
    isUnknown: true,
  },
  // the Python package jsonschema, its message of additionalProperties
  {
    pattern: /\badditional properties are not allowed\b/gi,
    names: 'after',
    isUnknown: true,
  },
  // yym68686/uni-api#105, 2025-04-24
  {
    pattern:
      /\b(?:argument|parameter|field)s? (?:is |are )?not (?:supported|allowed|permitted|recognized)[^:.,\n]{0,40}:/gi,
    names: 'after',
    isUnknown: false,
  },
];

/** Sentences about reasoning that name no field by its name. */
const EFFORT_REFUSED =
  /\binvalid (?:value for )?(?:the )?['"`]?reasoning[ _]effort\b|\binvalid value at ['"`][\w.]{0,80}thinking_level\b|\breasoning[ _]effort\b[^.\n]{0,60}\bis invalid\b/i;
const BUDGET_REFUSED = /\bthinking budget \(?\d+\)? is invalid\b|\bbudget 0 is invalid\b/i;
const LEVEL_REFUSED = /\bthinking level\b[^.\n]{0,40}\bis not supported\b/i;
const ENCRYPTED_REFUSED = /\bencrypted content is not supported\b/i;

/**
 * Thinking can't be off: "This model always engages in thinking and cannot be disabled; please use low, high, or max", Z.ai:
 * sam-dumont/immich-video-memory-generator#919, 2026-09-14. "Reasoning is mandatory for this endpoint and cannot be disabled.", OpenRouter.
 * "This model only works in thinking mode.", Gemini: snailyp/gemini-balance#206, 2025-07-14. "only type=enabled is allowed", Moonshot:
 * anthropics/claude-code#69379, 2026-06-18.
 */
const THINKING_REQUIRED =
  /\b(?:thinking|reasoning)\b[^.\n]{0,80}\b(?:cannot|can't|can not|must not|may not) be (?:disabled|turned off|switched off|off)\b|\balways (?:engages in thinking|thinks|reasons)\b|\bonly works in thinking mode\b|\b(?:thinking|reasoning) (?:is (?:mandatory|required|always (?:on|enabled))|must be enabled)\b|\b(?:only type=enabled|only 'enabled') is (?:allowed|supported)\b|\bdoes not support (?:disabling|turning off) (?:thinking|reasoning)\b|\b(?:thinking|reasoning)\b[^.\n]{0,40}\b(?:disabled|none|off)['"`]? is not (?:supported|allowed)\b/i;

/**
 * A forced tool while thinking: Moonshot (theopenco/llmgateway#2090, 2026-04-26); "Thinking may not be enabled when tool_choice forces tool
 * use.", Anthropic; "The tool_choice parameter does not support being set to required or object in thinking mode", Alibaba;
 * "Thinking mode does not support this tool_choice", DeepSeek.
 */
const FORCED_TOOL =
  /\btool_choice\b[^.\n]{0,120}\b(?:in|with|while|when|during)\b[^.\n]{0,24}\b(?:thinking|reasoning)\b|\b(?:thinking|reasoning)\b[^.\n]{0,80}\b(?:cannot|can't|may not|must not|not|does not support)\b[^.\n]{0,60}\b(?:tool_choice|forced tool|forces tool)\b/i;

/**
 * "`temperature` and `top_p` cannot both be specified": cloud-apim/otoroshi-llm-extension#140, 2025-10-30;
 * HKUDS/nanobot#3939, 2026-05-20.
 */
const CONFLICT =
  /\b(?:cannot|can't|must not|may not) (?:specify|set|use|have|provide|pass|be used|be set|be specified)?\s*(?:both|together|at the same time)\b|\bboth be (?:specified|set|used|provided)\b|\bmutually exclusive\b|\bonly (?:specify |set |use |provide )?one of\b|\bnot both\b|\bare incompatible\b/gi;

/**
 * "Use 'max_completion_tokens' instead": griptape-ai/ComfyUI-Griptape#312, 2025-08-22; "has moved to
 * 'reasoning.effort'": OpenHands/software-agent-sdk#755.
 */
const RENAMED = /\buse ['"`]?([\w.]{1,64})['"`]? instead\b|\b(?:moved|renamed) to ['"`]([\w.]{1,64})['"`]/i;

/** The accepted values follow. kaitranntt/ccs#344, 2026-01-16; microsoft/vscode#310940, 2026-04-17; earendil-works/pi#1745, 2026-08-06. */
const VALUES =
  /\b(?:(?:supported|valid|allowed|accepted|permitted|possible|available) (?:reasoning |effort |thinking )*(?:values?|levels?|options?|efforts?)|(?:must|should) be (?:one of|either)|expected one of|input should be|please use|choose (?:one of|from)|only supports?)\b/gi;

/** Words for the output limit where a refusal does not name its field. */
const LIMIT_WORDS =
  /\bmax(?:imum)?[ _]?(?:output|completion|new)?[ _]?tokens\b|\b(?:output|completion|generated) tokens\b|\b(?:output|completion) (?:limit|length)\b|\bmax(?:imum)? (?:output|completion)\b/i;

/** The number in such a sentence is no limit of the output, or it may be none. */
const OTHER_LIMITS =
  /\bcontext (?:length|window|size|limit)\b|\bprompts?\b|\binputs?['"`]? (?:tokens?|length|size)\b|\binput_tokens\b|\bper (?:second|minute|hour|day|month|request|user|image)\b|\b(?:rate|concurren\w{1,8}|quota|credits?|balance|afford|rpm|tpm)\b/i;
/** The window of a model in another sentence. */
const WINDOW =
  /\binputs?['"`]? tokens \+|\bprompt contains\b|\bin the messages\b|\bmaximum context length\b/i;

const BETA = /\bunexpected values?(?:\(s\))? ([^\n]{1,512}?) for the [`'"]?anthropic-beta/i;

/** DeepSeek (losesky/ai-auto-trading#14, 2025-12-13); OpenAI: "'messages[0].role' does not support 'developer'". */
const DEVELOPER_ROLE =
  /\bunknown variant ['"`]?developer\b|\binvalid value: ['"`]developer\b|\btag ['"`]developer\b|\brole ['"`]?developer['"`]? (?:is )?(?:not|unsupported|unknown|invalid)\b|['"`]developer['"`] is not (?:one of|a valid|supported|allowed)|\bdoes not support ['"`]developer\b|\b(?:invalid|unexpected|unknown|unsupported)(?: message)? role:? ['"`]?developer\b|\brole\b[^\n]{0,40}\b(?:input should be|must be one of|should be one of)\b/i;

/** Words that show that a keyword is meant, and not a field: "For 'array' type, 'minItems' values other than 0 or 1 are not supported". */
const SCHEMA_CONTEXT =
  /schema|\btools?\b|function_declarations|\bparameters\b|\btype, |output_config\.format/i;
const SCHEMA_REFUSED =
  /\b(?:not (?:supported|permitted|allowed|valid|a valid)|only\b[^.\n]{0,80}\bsupported|unsupported|unknown name|cannot find field|unexpected|extraneous|unrecognized|must start with)\b/i;

/**
 * What the root of a tool's schema must be: "input_schema does not support oneOf, allOf, or anyOf at the top level"
 * (langchain-ai/langchain#39271, 2026-08-05); OpenAI: "schema must have type 'object' and not have
 * 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level" (chatanywhere/GPT_API_free#403, 2025-06-19), "schema must be a
 * JSON Schema of" type object (browserbase/stagehand#1159, 2025-10-22).
 */
const SCHEMA_ROOT =
  /\b(?:anyOf|oneOf|allOf)\b[^.\n]{0,80}\btop[- ]level\b|\bschema must (?:have type\b|be a JSON Schema of\b)/i;

/** What the refusal says depends on something else of the request: "may only be set to 1 when thinking is enabled". */
const CONDITIONS: readonly (readonly [Condition, RegExp])[] = [
  [
    'thinking',
    /\b(?:when|while|with|if|in|during)\b[^.\n]{0,40}\b(?:thinking|reasoning)\b(?! (?:is )?(?:off|disabled))|\badaptive mode\b/i,
  ],
  ['thinking_off', /\b(?:thinking|reasoning) is (?:off|disabled|not enabled)\b/i],
  ['tools', /\b(?:when|while|with|if|using)\b[^.\n]{0,40}\b(?:tools|function calling)\b/i],
  ['forced_tool', /\bforced? tool\b|\bforces tool\b/i],
  ['no_stream', /\bnon-streaming\b|\b(?:without|unless) stream|\bonly\b[^.\n]{0,40}\bstream/i],
  ['no_tools', /\bonly\b[^.\n]{0,40}\btools\b/i],
  ['stream', /\b(?:when|while|with|if|in) stream/i],
];

/** Words that make a sentence depend on something: on another field, or on who asks. */
const UNLISTED =
  /\b(?:when|whenever|if|unless|until|while|where|provided that|because|except|requires?|required|without|together with|along with|combined with|in combination|alongside|during|after|before|depends|depending)\b|\bonly (?:be used |be set |be specified )?(?:for|in|on|with|via|through)\b|\b(?:for|by|in|on|with|to) (?:this|your|the|an?|some|certain|other) (?:\w+ )?(?:organi[sz]ations?|accounts?|users?|projects?|workspaces?|teams?|tenants?|api keys?|keys?|credentials?|regions?|locations?|countr(?:y|ies)|plans?|tiers?|subscriptions?|deployments?|customers?)\b|\b(?:your|this) (?:organi[sz]ation|account|user|project|workspace|team|tenant|api key|plan|tier|subscription)\b|\b(?:in preview|permissions?|verified|verification|enterprise)\b/i;

/** Whether a sentence has a condition that is none of {@link CONDITIONS}. */
export function hasUnlistedCondition(sentence: string): boolean {
  return UNLISTED.test(sentence);
}

/**
 * The statements of a refusal about fields that the request has and that may be changed. Empty: the refusal reaches the client.
 * A field counts only where a phrase puts it. Whether a statement is an echo of the prompt is not known here.
 */
export function readStatements(refusal: FieldRefusal, request: SentRequest): readonly Statement[] {
  const text = withoutQuotations(refusal.message.slice(0, MAX_REFUSAL_CHARS));
  const fields = new SentFields(request.body);
  const named = refusal.field === undefined ? [] : fields.named(refusal.field);
  const found = new Statements(text, fields);
  readThinking(text, fields, found);
  const mentions = readFields(text, fields);
  for (const { field, isUnknown, phrase, name } of mentions) {
    const renamed = readRenaming(text, phrase, mentions);
    if (renamed !== null && classOf(field) !== 'kept' && renamed.to !== field) {
      found.add({ kind: 'renamed', field, to: renamed.to }, phrase, [name, renamed.span]);
    }
    found.add({ kind: 'unsupported', field, isUnknown }, phrase, [name]);
  }
  readValues(text, named, fields, found);
  readBetas(text, request.betas, found);
  readKeywords(text, found);
  const root = SCHEMA_ROOT.exec(text);
  if (root !== null) found.add({ kind: 'schema_root' }, spanOf(root));
  // A field that is named beside a message which says that it is not supported, and names none.
  const unsupported = /\bnot supported\b/i.exec(text);
  if (
    found.isEmpty &&
    mentions.length === 0 &&
    named.length > 0 &&
    (UNSUPPORTED_CODES.has(refusal.code) || unsupported !== null)
  ) {
    const span = unsupported === null ? { from: 0, to: 0 } : spanOf(unsupported);
    for (const field of named) found.add({ kind: 'unsupported', field, isUnknown: false }, span);
  }
  return found.list;
}

/** The new name behind a phrase, before the next one. */
function readRenaming(
  text: string,
  phrase: TextSpan,
  mentions: readonly NamedField[],
): { readonly to: string; readonly span: TextSpan } | null {
  const next = mentions.reduce(
    (first, { phrase: { from } }) => (from > phrase.from ? Math.min(first, from) : first),
    text.length,
  );
  const match = RENAMED.exec(text.slice(phrase.from, next));
  const to = match?.[1] ?? match?.[2];
  return match === null || to === undefined ? null : { to, span: spanOf(match, phrase.from) };
}

/** OpenAI's codes, which compatible hosts repeat. They say which field, with the field beside them, if the message does not. */
const UNSUPPORTED_CODES = new Set(['unsupported_parameter', 'unknown_parameter']);

/** Statements of one refusal. A refusal with more names the fields of an odd request. */
const MAX_STATEMENTS = 32;
/** Each change copies the top level of a body, which takes long where the engine keeps it as a hash table. */
const MAX_STATEMENTS_OF_LARGE = 4;

/** Collects statements. Of two about one subject the one that says more holds: a value rather than a removal. */
class Statements {
  readonly #found = new Map<string, Statement>();
  readonly #text: string;
  readonly #fields: SentFields;
  readonly #most: number;

  constructor(text: string, fields: SentFields) {
    this.#text = text;
    this.#fields = fields;
    const isLarge = Object.keys(fields.body).length > LARGE_OBJECT_MEMBERS;
    this.#most = isLarge ? MAX_STATEMENTS_OF_LARGE : MAX_STATEMENTS;
  }

  get isEmpty(): boolean {
    return this.#found.size === 0;
  }

  /** One of each subject, in the order in which they were found. */
  get list(): readonly Statement[] {
    return [...this.#found.values()];
  }

  /**
   * @param spans further words that say it
   * @param isRemembered false: the statement changes this request and no later one
   */
  add(
    finding: Finding,
    phrase: TextSpan,
    spans: readonly TextSpan[] = [],
    { isRemembered = true }: { readonly isRemembered?: boolean } = {},
  ): void {
    const key = subjectOf(finding);
    const other = this.#found.get(key);
    if (other === undefined ? this.#found.size >= this.#most : rankOf(other.finding) <= rankOf(finding))
      return;
    const sentence = sentenceAt(this.#text, phrase.from);
    const { from, to } = sentence;
    const stated = readConditions(this.#text.slice(from, to), finding, this.#fields.body);
    const claim = {
      sentence: { from, to: Math.max(to, phrase.to) },
      core: [phrase, ...spans, ...this.#namesOf(finding, sentence)],
    };
    this.#found.set(key, {
      finding,
      conditions: stated ?? [],
      claim,
      isRemembered: isRemembered && stated !== null && hasKnownNames(finding),
    });
  }

  /** Where a sentence names the field. */
  #namesOf(finding: Finding, sentence: TextSpan): readonly TextSpan[] {
    if (!('field' in finding)) return [];
    const { field } = finding;
    return namesIn(this.#text, sentence).filter(({ name }) => this.#fields.named(name).includes(field));
  }
}

/**
 * What else must hold for a refusal, by its sentence. Null: something that is not on the list, or that the request does not meet, so that
 * nothing is known of other requests.
 */
function readConditions(sentence: string, finding: Finding, body: JsonObject): readonly Condition[] | null {
  const conditions: Condition[] = [];
  // What these findings mean is a condition itself.
  const meaning = finding.kind === 'forced_tool' ? FORCED_TOOL : THINKING_REQUIRED;
  let rest = sentence.replace(meaning, ' ');
  for (const [condition, pattern] of CONDITIONS) {
    const match = pattern.exec(rest);
    if (match === null) continue;
    rest = rest.replace(match[0], ' ');
    if (!isOther(condition, finding)) continue;
    if (!meets(condition, body)) return null;
    conditions.push(condition);
  }
  return hasUnlistedCondition(rest) ? null : conditions;
}

/** A finding about thinking has its condition in its meaning. */
function isOther(condition: Condition, finding: Finding): boolean {
  if (finding.kind === 'thinking_required') return condition !== 'thinking' && condition !== 'thinking_off';
  if (finding.kind === 'forced_tool') return condition === 'stream' || condition === 'no_stream';
  const isReasoning = 'field' in finding && ['effort', 'reasoning'].includes(classOf(finding.field));
  return !(isReasoning && condition === 'thinking');
}

const RANKS: readonly Finding['kind'][] = [
  'renamed',
  'levels',
  'range',
  'conflict',
  'refused_value',
  'unsupported',
];

function rankOf({ kind }: Finding): number {
  return RANKS.indexOf(kind);
}

/**
 * Blanks quoted text with a space, which may be the caller's, and cuts what a host repeats of the request. Names of
 * fields have no spaces.
 */
function withoutQuotations(text: string): string {
  const end = text.search(/[,;{]\s?['"]?(?:input|value|input_value|got|received)['"]?\s?[:=]\s?(?=\S)/i);
  const firstPart = end < 0 ? text : text.slice(0, end);
  return firstPart
    .replace(/"([^"\n]{1,2048})"/g, blankSpaced)
    .replace(/`([^`\n]{1,2048})`/g, blankSpaced)
    .replace(/\u201c([^\u201d\n]{1,2048})\u201d/g, blankSpaced)
    .replace(/\xab([^\xbb\n]{1,2048})\xbb/g, blankSpaced)
    .replace(/(?<![\w])'([^'\n]{1,2048})'(?!\w)/g, blankSpaced);
}

/** The places of all other words stay. */
function blankSpaced(quoted: string, inner: string): string {
  return /\s/.test(inner) ? quoted.charAt(0) + ' '.repeat(inner.length) + quoted.charAt(0) : quoted;
}

interface NamedField {
  readonly field: string;
  readonly isUnknown: boolean;
  readonly phrase: TextSpan;
  readonly name: TextSpan;
}

function readFields(text: string, fields: SentFields): readonly NamedField[] {
  return PHRASES.flatMap(({ pattern, names, isUnknown }) =>
    [...text.matchAll(pattern)].flatMap((match) => {
      const phrase = spanOf(match);
      const found = names === 'before' ? namesBefore(text, phrase.from) : namesAfter(text, phrase.to);
      return found.flatMap((name) =>
        fields.named(name.name).map((field) => ({ field, isUnknown, phrase, name })),
      );
    }),
  );
}

/** A word of a text, and where it is. */
interface Name extends TextSpan {
  readonly name: string;
  /** In lower case. */
  readonly word: string;
}

/** A list of names is searched in this many characters beside a phrase. */
const MAX_LIST_CHARS = 300;

const TOKEN = /['"`]?([A-Za-z$#][\w$.\-[\]/#]{0,127})['"`]?|[,[\](){}:=|]/g;

/** Words between a phrase and the names. */
const FILLERS = wordSet(`
  the a an parameter parameters field fields argument arguments property properties key keys option options
  name names supplied provided received found in object request for this model following keyword use of
  setting values value were was s
`);
const JOINERS = wordSet(', : and or [ ] ( ) |');
const JOINERS_BEHIND_PHRASE = new Set([...JOINERS, '=']);

function tokensOf(text: string, offset = 0): readonly Name[] {
  return [...text.matchAll(TOKEN)].map((match) => {
    const token = match[1] ?? match[0];
    // A full stop ends the sentence and not the name.
    const isOpen = token.includes('[');
    const name = token.length > 1 ? token.replace(isOpen ? /[.:]$/ : /[.:\]]{1,2}$/, '') : token;
    return { name, word: name.toLowerCase(), ...spanOf(match, offset) };
  });
}

/** The words of a sentence that may be names. */
function namesIn(text: string, { from, to }: TextSpan): readonly Name[] {
  return tokensOf(text.slice(from, Math.min(to, from + 2 * MAX_LIST_CHARS)), from);
}

/** The list with which tokens begin, such as `'minimal', 'low', and 'high'`: fillers may come before the first. */
function listOf(
  tokens: readonly Name[],
  fillers: ReadonlySet<string>,
  joiners: ReadonlySet<string> = JOINERS,
): readonly Name[] {
  const names: Name[] = [];
  let isJoined = true;
  for (const token of tokens) {
    if (joiners.has(token.word)) isJoined = true;
    else if (names.length === 0 && fillers.has(token.word)) continue;
    else if (!isJoined) break;
    else {
      names.push(token);
      isJoined = false;
    }
  }
  return names;
}

function namesAfter(text: string, end: number): readonly Name[] {
  const tokens = tokensOf(text.slice(end, end + MAX_LIST_CHARS), end);
  const names = listOf(tokens, FILLERS, JOINERS_BEHIND_PHRASE);
  return names.filter(({ name, to }) => !isAboutMessages(name, text.slice(to, to + 16)));
}

/** "does not support user messages" is about messages, and not about the field `user`. */
function isAboutMessages(name: string, next: string): boolean {
  return name === 'user' && /^ (?:message|role|prompt|input|content)/.test(next);
}

function namesBefore(text: string, start: number): readonly Name[] {
  const from = Math.max(0, start - MAX_LIST_CHARS);
  return listOf(tokensOf(text.slice(from, start), from).toReversed(), FILLERS);
}

function readThinking(text: string, { body }: SentFields, found: Statements): void {
  const required = THINKING_REQUIRED.exec(text);
  if (required !== null && turnsThinkingOff(body)) {
    const levels = [...text.matchAll(VALUES)].flatMap((match) =>
      levelsAfter(text, match.index + match[0].length),
    );
    found.add({ kind: 'thinking_required', levels: levels.filter(isLevel) }, spanOf(required));
  }
  const forced = FORCED_TOOL.exec(text);
  if (forced !== null && forcesTool(body)) found.add({ kind: 'forced_tool' }, spanOf(forced));
  const words: readonly (readonly [RegExp, string])[] = [
    [EFFORT_REFUSED, 'reasoning_effort'],
    [LEVEL_REFUSED, 'reasoning_effort'],
    [BUDGET_REFUSED, 'thinking_budget'],
  ];
  for (const [pattern, field] of words) {
    const match = pattern.exec(text);
    const value = match === null ? null : valueFingerprint(field, body);
    if (match === null || value === null) continue;
    found.add({ kind: 'refused_value', field, fingerprint: value }, spanOf(match));
  }
  const encrypted = ENCRYPTED_REFUSED.exec(text);
  if (encrypted !== null && fieldValue('include', body) !== undefined) {
    found.add({ kind: 'unsupported', field: 'include', isUnknown: false }, spanOf(encrypted));
  }
}

function readBetas(text: string, betas: readonly string[], found: Statements): void {
  const match = BETA.exec(text);
  if (match === null) return;
  for (const name of new Set(match[1]?.match(/[\w.-]{1,128}/g) ?? [])) {
    if (betas.includes(name)) found.add({ kind: 'beta', fingerprint: fingerprint(name) }, spanOf(match));
  }
}

/** The entry of a header that a finding is about. */
export function betaOf(
  finding: Extract<Finding, { kind: 'beta' }>,
  betas: readonly string[],
): string | undefined {
  return betas.find((name) => fingerprint(name) === finding.fingerprint);
}

function readValues(text: string, named: readonly string[], fields: SentFields, found: Statements): void {
  const { body } = fields;
  const role = DEVELOPER_ROLE.exec(text);
  // A list of roles names no developer, but the role that takes its place.
  if (role !== null && /developer|\bsystem\b/i.test(text)) {
    found.add({ kind: 'developer_role' }, spanOf(role));
  }
  for (const conflict of text.matchAll(CONFLICT)) readConflict(text, conflict, fields, found);
  for (const match of text.matchAll(VALUES)) {
    const span = spanOf(match);
    const levels = levelsAfter(text, span.to);
    const field = nearestField(text, span.from, named, fields);
    if (field === null) continue;
    if (levels.some(isLevel)) {
      // The values of a field such as `verbosity`, which is removed and not set.
      found.add({ kind: 'levels', field, levels: levels.filter(isLevel) }, span);
    } else if (
      levels.length > 0 &&
      classOf(field) === 'removed' &&
      typeof fieldValue(field, body) === 'string'
    ) {
      const value = valueFingerprint(field, body);
      if (value !== null) found.add({ kind: 'refused_value', field, fingerprint: value }, span);
    } else if (levels.length > 0 && classOf(field) === 'reasoning' && asksForThinking(body)) {
      found.add({ kind: 'unsupported', field, isUnknown: false }, span);
    }
  }
  readNumbers(text, named, fields, found);
}

/** Of two fields the one that says less is removed. */
const WEAKER = fieldsBy(({ says }) => says);

function readConflict(text: string, match: RegExpExecArray, fields: SentFields, found: Statements): void {
  const names = namesIn(text, sentenceAt(text, match.index));
  const both = names.filter(({ name }) => fields.named(name).length > 0);
  const named = [...new Set(both.flatMap(({ name }) => fields.named(name)))];
  const weakest = named.toSorted((a, b) => weakness(a) - weakness(b))[0];
  const other = named.find((field) => field !== weakest);
  if (weakest === undefined || other === undefined) return;
  found.add({ kind: 'conflict', field: weakest, with: other }, spanOf(match), both);
}

function weakness(field: string): number {
  const at = WEAKER.indexOf(field);
  return at < 0 ? WEAKER.length : at;
}

/** The values of a list, up to a word that is too long for one. */
function levelsAfter(text: string, end: number): readonly string[] {
  const listed = listOf(tokensOf(text.slice(end, end + MAX_LIST_CHARS)), LEVEL_FILLERS);
  const long = listed.findIndex(({ name }) => name.length > MAX_LEVEL_CHARS);
  const levels = long < 0 ? listed : listed.slice(0, long);
  return levels.map(({ name, word }) => (isLevel(word) ? word : name));
}

const MAX_LEVEL_CHARS = 32;
const LEVEL_FILLERS = wordSet('are is one of only include for this model the following values');

/** The field whose value a phrase is about: the one beside the message, or the nearest name before the phrase, or after it. */
function nearestField(text: string, at: number, named: readonly string[], fields: SentFields): string | null {
  const from = Math.max(0, at - MAX_LIST_CHARS);
  return (
    lastKnown(text.slice(from, at), fields) ??
    named[0] ??
    firstKnown(text.slice(at, at + MAX_LIST_CHARS), fields)
  );
}

function readNumbers(text: string, named: readonly string[], fields: SentFields, found: Statements): void {
  for (const range of rangesIn(text, (word) => fields.changeable(word).length > 0)) {
    const field = limitedField(text, range, named, fields);
    const value = field === null ? undefined : fieldValue(field, fields.body);
    if (field === null || typeof value !== 'number') continue;
    const { min, max, from, to } = range;
    // A limit is no single value.
    if (min === max && isCountOfTokens(field)) continue;
    if ((min === null || value >= min) && (max === null || value <= max)) continue;
    const isTiny = max !== null && isCountOfTokens(field) && max * SMALLEST_SHARE < value;
    const finding = { kind: 'range', field, min, max } as const;
    found.add(finding, { from, to }, limitWords(text, from), { isRemembered: !isTiny });
  }
}

/** The words for the output limit in the sentence of a place. */
function limitWords(text: string, at: number): readonly TextSpan[] {
  const { from, to } = sentenceAt(text, at);
  const match = LIMIT_WORDS.exec(text.slice(from, to));
  return match === null ? [] : [spanOf(match, from)];
}

/** A limit below this share of what was asked may be misread, so that it is used once, and not remembered. */
const SMALLEST_SHARE = 16;

/** The field that a range is about; null: what the sentence counts is no field of the request. */
function limitedField(
  text: string,
  { from, to, isWhole, countsTokens }: NamedRange,
  named: readonly string[],
  fields: SentFields,
): string | null {
  const bounds = sentenceAt(text, from);
  const sentence = text.slice(bounds.from, bounds.to);
  const before = lastKnown(text.slice(Math.max(bounds.from, from - MAX_LIST_CHARS), to), fields);
  const isOutput = LIMIT_WORDS.test(sentence);
  const limit = isOutput ? outputLimitOf(fields.body) : null;
  // A sentence without a field is about the one that is named beside the message or before it.
  const field =
    before ??
    limit ??
    named[0] ??
    firstNamed(text.slice(to, Math.min(bounds.to, to + MAX_LIST_CHARS)), fields) ??
    lastKnown(text.slice(Math.max(0, bounds.from - MAX_LIST_CHARS), bounds.from), fields);
  if (field === null) return null;
  if (!isCountOfTokens(field)) return countsTokens ? null : field;
  const names = before !== null || isOutput || countsTokens || /\b(?:value|range)\b/i.test(sentence);
  return names && isWhole && !OTHER_LIMITS.test(sentence) && !WINDOW.test(text) ? field : null;
}

function isCountOfTokens(field: string): boolean {
  return classOf(field) === 'limit' || field === 'thinking_budget';
}

function knownIn(text: string, fields: SentFields): readonly string[] {
  return tokensOf(text).flatMap(({ name }) => fields.changeable(name));
}

function lastKnown(text: string, fields: SentFields): string | null {
  return knownIn(text, fields).at(-1) ?? null;
}

/** The first name of a field; null if it is none that may be changed. */
function firstNamed(text: string, fields: SentFields): string | null {
  const names = tokensOf(text).flatMap(({ name }) => fields.all(name));
  const [first] = names.filter((name) => name !== 'model');
  return first !== undefined && isChangeable(first) ? first : null;
}

function firstKnown(text: string, fields: SentFields): string | null {
  return knownIn(text, fields)[0] ?? null;
}

function outputLimitOf(body: JsonObject): string | null {
  return LIMIT_FIELDS.find((field) => fieldValue(field, body) !== undefined) ?? null;
}

/** Names of keywords: in quotation marks, behind "properties", or at the start of a sentence about patterns (llama.cpp). */
const KEYWORD =
  /\b(minLength|maxLength|minItems|maxItems|uniqueItems|multipleOf|additionalProperties)\b|\.([$A-Za-z]{4,24}): (?:only|unsupported|not)\b|\bkey \[([$A-Za-z]{4,24})\]|is not a valid (format)\b|\b(?:unsupported|invalid|unknown) (format)\b|['"`]([$A-Za-z]{4,24})['"`]|\bproperties ([A-Za-z, ]{4,120}?) (?:is|are) not\b|: (Pattern) must (?:start|end)\b/g;

function readKeywords(text: string, found: Statements): void {
  const context = SCHEMA_CONTEXT.exec(text);
  const refused = SCHEMA_REFUSED.exec(text);
  if (context === null || refused === null || /\bis required\b/i.test(text)) return;
  for (const match of text.matchAll(KEYWORD)) {
    const words = match.slice(1).find((group) => group !== undefined) ?? '';
    for (const word of words.split(/,\s?| and /)) {
      const name = word === 'Pattern' ? 'pattern' : word.trim();
      if (!VALIDATING_KEYWORDS.has(name)) continue;
      const others = /\bvalues other than (\d{1,9})(?: or (\d{1,9}))?/.exec(
        text.slice(match.index, match.index + 80),
      );
      const allowed = [others?.[1], others?.[2]].flatMap((one) => (one === undefined ? [] : [Number(one)]));
      const spans = [spanOf(context), spanOf(refused)];
      found.add({ kind: 'schema', keyword: name, allowed }, spanOf(match), spans);
    }
  }
}

/** The entries of a header `anthropic-beta`. */
export function betasOf(header: string | null): readonly string[] {
  return (header ?? '')
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}
