/** The text of `docs/models.md`: the tables in `src/providers` of what profiles and families of models accept. */

import { REASONING_LEVELS } from '../../src/facts/efforts.ts';
import type { ClaudeFamily } from '../../src/protocols/anthropic-messages/family.ts';
import type { GeminiFamily } from '../../src/protocols/gemini/family.ts';
import { CLAUDE_FAMILIES } from '../../src/providers/anthropic.ts';
import { GEMINI_FAMILIES } from '../../src/providers/gemini.ts';
import { PROFILES } from '../../src/providers/index.ts';
import type { ApiFamily, Profile } from '../../src/providers/provider.ts';
import { isOptional } from '../../src/request-translation/dropped-fields.ts';
import type { FieldRule, ReasoningFamily, RequestRules } from '../../src/request-translation/rules.ts';

const INTRO = `# What models and servers accept

\`npm run models\` writes this page from the tables in \`src/providers\`, where each row has its source and date; a test compares. Names are
globs, the first row that matches holds, and a name that no row has counts as the newest of its kind. [Request translation](request-translation.md)
says what happens to a field that is not accepted, [providers](providers.md#peculiarities) what a table cannot say.`;

/** The text of the page. */
export function modelsText(): string {
  const sections = [
    INTRO,
    `## Profiles

For Chat Completions. An asterisk: in some requests only, or some values. "Loses" are fields that are dropped and reported; the others are
refused, or 400 if the server would ignore them. Reasoning of earlier outputs goes back under these names; \`both\` are \`reasoning\` and
\`reasoning_content\`. System messages: leading ones only, or one, the first; the others become the user's. \`gemini\` is Google's compatible API.`,
    table(
      ['profile', 'hosts', 'output limit', 'loses', 'refuses', 'reasoning goes back as', 'system messages'],
      PROFILES.flatMap(profileRow),
    ),
    `## Reasoning efforts

An effort that is not listed becomes [the nearest](request-translation.md#efforts). The lowest stands for "off" where reasoning cannot be off.`,
    table(['profile', 'models', 'efforts', 'off'], withoutRepeats(PROFILES.flatMap(effortRows))),
    `## Chat or Responses

Which API serves [chat and Messages requests](request-translation.md#chat-through-responses). "Either": Responses if the request has tools, requests
reasoning or carries it back, else chat.`,
    table(['profile', 'models', 'API', 'tools through chat'], withoutRepeats(PROFILES.flatMap(apiRows))),
    '## Claude, and other models behind Messages',
    table(
      ['models', 'most output', 'thinking', 'off', 'efforts', 'sampling', 'schemas', 'late system turns'],
      CLAUDE_FAMILIES.map(claudeRow),
    ),
    '## Gemini',
    table(['models', 'thinking', 'sampling', 'refuses'], GEMINI_FAMILIES.map(geminiRow)),
  ];
  return `${sections.join('\n\n')}\n`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.map((cell) => cell || ' ').join(' | ')} |`).join('\n');
}

/** The first cell of a row only where it differs from the row before. */
function withoutRepeats(rows: readonly (readonly string[])[]): string[][] {
  return rows.map(([first = '', ...rest], i) => [rows[i - 1]?.[0] === first ? '' : first, ...rest]);
}

function code(words: readonly string[]): string {
  return words.map((word) => `\`${word}\``).join(', ');
}

/** Globs of models, without those that only add the prefix of Google's lists. */
function globs(models: readonly string[]): string {
  return code(models.filter((glob) => !models.some((other) => glob === `models/${other}`)));
}

/** Efforts, the lowest first; three and more that follow each other as a range. */
function levelsText(efforts: readonly string[]): string {
  const [first = '', ...rest] = efforts;
  const start = REASONING_LEVELS.indexOf(first);
  const isRange = rest.length > 1 && efforts.every((effort, i) => REASONING_LEVELS[start + i] === effort);
  return isRange ? `\`${first}\` to \`${efforts.at(-1)}\`` : code(efforts);
}

const CACHE_FIELDS = ['prompt_cache_key', 'prompt_cache_retention', 'prompt_cache_options'];

function rulesOf({ endpoints }: Profile): RequestRules | undefined {
  return endpoints.chat?.request.kind === 'chat' ? endpoints.chat.request.rules : undefined;
}

function profileRow(profile: Profile): readonly (readonly string[])[] {
  const rules = rulesOf(profile);
  if (rules === undefined) return [];
  const { fields, messages } = rules;
  const rows = Object.entries(fields);
  const isLost = ([field, rule]: [string, FieldRule]) => rule.kind === 'refused' && isOptional(field);
  const unsupported = rows.filter(([, { kind }]) => kind === 'refused' || kind === 'ignored');
  const limit = rows.find(([field, { kind }]) => kind === 'renamed' && /^max_/.test(field))?.[1];
  const forms = messages.reasoning.map(({ models, form }) => `\`${form}\`${models === undefined ? '' : '*'}`);
  const details = [
    ...(messages.takesDetails ? ['`reasoning_details`'] : []),
    ...(messages.takesExtraContent ? ['`extra_content`'] : []),
  ];
  return [
    [
      `\`${profile.id}\``,
      code(profile.hosts),
      limit?.kind === 'renamed' ? `\`${limit.to}\`` : 'as sent',
      lostText(unsupported.filter(isLost)),
      unsupported
        .filter((row) => !isLost(row))
        .map(fieldText)
        .join(', '),
      [...new Set(forms), ...details].join(', '),
      [
        ...(messages.roles?.developer === 'system' ? ['no `developer`'] : []),
        ...(messages.system ?? []).map(({ place, models }) => `${place}${models === undefined ? '' : '*'}`),
      ].join(', '),
    ],
  ];
}

/** The three fields of prompt caches as one. */
function lostText(rows: readonly [string, FieldRule][]): string {
  const names = rows.map(([field]) => field);
  const texts = rows.map(fieldText);
  if (!CACHE_FIELDS.every((field) => names.includes(field))) return texts.join(', ');
  return [...texts.filter((_, i) => !CACHE_FIELDS.includes(names[i] ?? '')), '`prompt_cache_*`'].join(', ');
}

function fieldText([field, rule]: [string, FieldRule]): string {
  return `\`${field}\`${'when' in rule && rule.when !== undefined ? '*' : ''}`;
}

function effortRows(profile: Profile): readonly (readonly string[])[] {
  const families = rulesOf(profile)?.effort?.families ?? [];
  return families.map((family) => [`\`${profile.id}\``, modelsOf(family), ...effortCells(family)]);
}

function effortCells({ efforts, reasons }: ReasoningFamily): readonly [string, string] {
  if (reasons === 'never') return ['does not reason', ''];
  const levels = efforts.filter((effort) => effort !== 'none');
  return [levels.length === 0 ? 'no levels' : levelsText(levels), efforts.includes('none') ? 'yes' : 'no'];
}

function modelsOf({ models }: { readonly models?: readonly string[] }): string {
  return models === undefined || (models.length === 1 && models[0] === '*') ? 'all others' : globs(models);
}

const APIS: Readonly<Record<ApiFamily['api'], string>> = {
  chat: 'chat',
  responses_only: 'Responses',
  prefer_responses: 'either',
};

function apiRows({ id, responses }: Profile): readonly (readonly string[])[] {
  return (responses?.families ?? []).map((family) => [
    `\`${id}\``,
    modelsOf(family),
    APIS[family.api],
    family.api === 'prefer_responses' ? toolsText(family.toolsOnChat) : '',
  ]);
}

function toolsText(efforts: readonly string[] | undefined): string {
  if (efforts === undefined) return 'yes';
  if (efforts.length === 0) return 'no';
  return `with ${efforts.map((effort) => (effort === 'absent' ? 'no effort' : `\`${effort}\``)).join(' or ')}`;
}

const SAMPLING: Readonly<Record<ClaudeFamily['sampling'], string>> = {
  all: 'all',
  one: '`temperature` or `top_p`; `top_k`',
  none: 'none',
};

const OFF: Readonly<Record<ClaudeFamily['noThinking'], string>> = {
  absent: 'yes',
  disabled: 'yes',
  between_tools: '`between_tools`',
  never: 'no',
};

function claudeRow(family: ClaudeFamily): readonly string[] {
  const { thinking, noThinking, maxTokens, efforts, sampling } = family;
  const kinds = thinking.map((type) => (type === 'enabled' ? 'a budget' : 'adaptive'));
  return [
    modelsOf(family),
    maxTokens.toLocaleString('en-US'),
    kinds.length === 0 ? 'none' : kinds.join(' or '),
    kinds.length === 0 ? '' : OFF[noThinking],
    levelsText(efforts),
    SAMPLING[sampling],
    yes(family.takesSchemas),
    yes(family.takesSystemTurns),
  ];
}

function geminiRow(family: GeminiFamily): readonly string[] {
  const { thinking, sampling, refused } = family;
  return [modelsOf(family), thinkingText(thinking), sampling ? 'yes' : 'ignored', code(refused)];
}

function thinkingText(thinking: GeminiFamily['thinking']): string {
  if (thinking.kind === 'none') return 'none';
  if (thinking.kind === 'level') return levelsText(thinking.levels);
  const { min, max, canBeOff, byDefault } = thinking;
  const bounds = `${min.toLocaleString('en-US')} to ${max.toLocaleString('en-US')} tokens`;
  return `${bounds}${canBeOff ? ', or off' : ''}${byDefault ? '' : '; off by default'}`;
}

function yes(is: boolean): string {
  return is ? 'yes' : 'no';
}
