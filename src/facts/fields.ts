/**
 * What Weir knows of the fields of requests in any protocol: one row for each field, with what translation, refusals, limits, hashes and
 * records ask of it. A field without a row is not known. Lists of fields are queries of this table.
 */
import { hasItems, isObject, type JsonObject, readArray, readText } from '../shared/json.ts';
import { words } from '../shared/words.ts';

/**
 * What a refusal may do to a field:
 * - `removed`: without it the output means the same, or the provider's default applies;
 * - `limit`: the output limit is renamed or lowered, and never removed;
 * - `effort`, `reasoning`: set to a level, or removed;
 * - `kept`: never changed, because it steers the output.
 */
export type FieldClass = 'removed' | 'limit' | 'effort' | 'reasoning' | 'kept';

/** The facts of one field. An absent one does not hold. */
export interface Field {
  /** Absent: the field may go only where the caller allows it. */
  readonly class?: FieldClass;
  /** Its name in `generationConfig`, where Google's native API has such settings. */
  readonly configName?: string;
  /** Where else it is, besides the top level under its own name: paths with dots. */
  readonly elsewhere?: readonly string[];
  /** Which values may go, where its class is `removed`. Absent: all. */
  readonly isRemovable?: (value: unknown, isUnknownToHost: boolean) => boolean;
  /** Whether a value has the same effect as none. https://platform.openai.com/docs/api-reference/chat (2026-11-21) */
  readonly isDefault?: (value: unknown, body: JsonObject) => boolean;
  /** Its default says nothing, always or beside an empty list of tools, and strict providers refuse it. */
  readonly saysNothing?: 'as_default' | 'without_tools';
  /**
   * A provider that refuses it gets the request without it, reported: it is about the request, such as who sent it, or it is sampling that
   * clients send by default.
   */
  readonly optional?: 'about_request' | 'sampling';
  /** With which of two fields that exclude each other the request says less: the lower number goes. Absent: the last. */
  readonly says?: number;
  /** It asks for reasoning, or sets its amount. The first of those that a request has stands for all: the lowest number. */
  readonly asksToReason?: number;
  /** A further field of reasoning, which goes with it. */
  readonly followsReasoning?: true;
  /** A server may read it as the output limit or the number of choices, so that it goes where a key limits the output. */
  readonly competesWithLimit?: true;
  /**
   * It adds nothing to a prompt: a `setting` has any value, a `flag` a number or true. A `text` is the prompt itself, or a part of it. Any
   * other field may add to it: `enable_search` of Qwen adds results, and `vl_high_resolution_images` tokens of images.
   */
  readonly prompt?: 'setting' | 'flag' | 'text';
  /** Chat templates write it in another form, with indents or with escapes. */
  readonly isRewritten?: true;
  /** The provider searches, reads or continues from what it stores. */
  readonly reads?: 'stored' | 'searches';
  /** The provider may shorten the prompt. */
  readonly shortensPrompt?: true;
  /** The texts by which the prompt of a request is estimated. */
  readonly isEstimated?: true;
  /**
   * Its part of the prompt for hashes. The order of the rows is that of the hashed text, which is stored. `uncounted`:
   * it cannot change how a prompt is counted. Absent: it is counted with the rest.
   */
  readonly hashed?: 'conversation' | 'system' | 'tools' | 'setting' | 'uncounted';
  /** It truncates or hides a part of the output, or produces more than is sent. */
  readonly hidesOutput?: true;
  /** It changes the price of a token, except with these values. */
  readonly plainTiers?: readonly string[];
  /** Its texts are words of the API, and not the caller's own. */
  readonly hasApiWords?: true;
  /** The gateway reads it. Upstreams refuse it, or would route by it again. */
  readonly routes?: true;
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

const is = (standard: unknown) => (value: unknown) => value === standard;

const SAMPLING = { class: 'removed', hashed: 'uncounted', prompt: 'flag' } as const;
const LIMIT = { class: 'limit', hashed: 'uncounted', prompt: 'flag' } as const;
const ABOUT = { class: 'removed', optional: 'about_request', prompt: 'setting' } as const;
const TOOLS: Field = {
  ...{ class: 'kept', prompt: 'setting', isRewritten: true, isEstimated: true, hashed: 'tools' },
  isDefault: isEmptyList,
};
const STORED = { reads: 'stored' } as const;
const SETTING = { prompt: 'setting' } as const;
const FLAG = { prompt: 'flag' } as const;
const COMPETING = { competesWithLimit: true } as const;
const THINKING_CONFIG = 'generationConfig.thinkingConfig';

/** Each row has one field, or several with the same facts, by their names. */
const ROWS: readonly (readonly [names: string, field: Field])[] = [
  // The conversation, in the order in which it is estimated.
  ['system instructions', { class: 'kept', isEstimated: true, hashed: 'system' }],
  ['systemInstruction', { class: 'kept', ...STORED, isEstimated: true, hashed: 'system' }],
  ['system_instruction', { ...STORED, isEstimated: true, hashed: 'system' }],
  ['messages', { class: 'kept', isEstimated: true, hashed: 'conversation' }],
  ['prompt suffix', { class: 'kept', prompt: 'text', isEstimated: true }],
  ['tools', { ...TOOLS, saysNothing: 'as_default' }],
  ['functions', TOOLS],
  ['input', { class: 'kept', prompt: 'text', isEstimated: true, hashed: 'conversation' }],
  ['contents', { class: 'kept', ...STORED, isEstimated: true, hashed: 'conversation' }],
  ['prediction', { class: 'kept', hidesOutput: true }],
  [
    'parallel_tool_calls',
    {
      ...{ class: 'removed', prompt: 'setting', isRemovable: is(true), saysNothing: 'without_tools' },
      isDefault: (value, { tools }) => value === true || !hasItems(tools),
    },
  ],
  ['allowed_tools', SETTING],
  ['max_tool_calls disable_tool_validation tool_stream parse_tool_calls', FLAG],

  // Reasoning, tools and format, in the order in which they are hashed.
  [
    'thinking',
    {
      ...{ class: 'reasoning', elsewhere: [THINKING_CONFIG], says: 8, asksToReason: 2 },
      ...{ prompt: 'setting', hashed: 'setting', hasApiWords: true },
    },
  ],
  ['output_config', { class: 'kept', prompt: 'setting', hashed: 'setting' }],
  [
    'reasoning',
    { class: 'reasoning', says: 7, asksToReason: 4, prompt: 'setting', hashed: 'setting', hasApiWords: true },
  ],
  [
    'reasoning_effort',
    {
      ...{
        class: 'effort',
        says: 1,
        asksToReason: 3,
        prompt: 'setting',
        hashed: 'setting',
        hasApiWords: true,
      },
      elsewhere: ['reasoning.effort', 'output_config.effort', `${THINKING_CONFIG}.thinkingLevel`],
    },
  ],
  [
    'enable_thinking',
    {
      ...{ class: 'reasoning', asksToReason: 5, prompt: 'flag', hashed: 'setting' },
      elsewhere: ['chat_template_kwargs.enable_thinking'],
    },
  ],
  ['chat_template_kwargs', { hashed: 'setting' }],
  [
    'tool_choice',
    {
      ...{
        class: 'kept',
        prompt: 'setting',
        hashed: 'setting',
        hasApiWords: true,
        saysNothing: 'without_tools',
      },
      // A choice of tools has no effect without tools.
      isDefault: (value, { tools }) => value === 'auto' || (value === 'none' && !hasItems(tools)),
    },
  ],
  ['function_call', { class: 'kept', prompt: 'setting', hashed: 'setting', isDefault: is('auto') }],
  ['toolConfig', { class: 'kept', hashed: 'setting' }],
  ['tool_config', { hashed: 'setting' }],
  [
    'response_format',
    {
      ...{ class: 'kept', prompt: 'setting', hashed: 'setting', isRewritten: true },
      isDefault: (value) => isObject(value) && value.type === 'text',
    },
  ],
  ['text output_format', { class: 'kept', hashed: 'setting' }],
  [
    'thinking_budget',
    {
      ...{ class: 'reasoning', says: 2, asksToReason: 1, prompt: 'flag' },
      elsewhere: ['thinking.budget_tokens', 'reasoning.max_tokens', `${THINKING_CONFIG}.thinkingBudget`],
    },
  ],
  ['include_reasoning', { class: 'reasoning', followsReasoning: true, prompt: 'flag', hidesOutput: true }],
  ['reasoning_format', { class: 'reasoning', followsReasoning: true, prompt: 'setting', hidesOutput: true }],
  ['reasoning_summary', { class: 'reasoning', elsewhere: ['reasoning.summary'] }],
  ['separate_reasoning', { prompt: 'flag', hidesOutput: true }],
  ['reasoning_split prompt_mode think', SETTING],
  ['stream_reasoning reasoning_in_content thinking_forced_open', FLAG],

  // Sampling.
  [
    'temperature',
    { ...SAMPLING, configName: 'temperature', optional: 'sampling', says: 5, isDefault: is(1) },
  ],
  ['top_p', { ...SAMPLING, configName: 'topP', optional: 'sampling', says: 4, isDefault: is(1) }],
  ['top_k', { ...SAMPLING, configName: 'topK', optional: 'sampling', says: 3 }],
  ['seed', { ...SAMPLING, configName: 'seed' }],
  ['presence_penalty', { ...SAMPLING, configName: 'presencePenalty', isDefault: is(0) }],
  ['frequency_penalty', { ...SAMPLING, configName: 'frequencyPenalty', isDefault: is(0) }],
  ['min_p', { ...SAMPLING, elsewhere: ['generationConfig.minP'] }],
  ['random_seed', { ...SAMPLING, elsewhere: ['generationConfig.randomSeed'] }],
  ['repetition_penalty', { ...SAMPLING, elsewhere: ['generationConfig.repetitionPenalty'] }],
  [
    'logit_bias',
    {
      ...{ class: 'kept', prompt: 'setting', saysNothing: 'as_default' },
      isDefault: (value) => isObject(value) && Object.keys(value).length === 0,
    },
  ],
  ['top_a typical_p length_penalty do_sample safe_prompt', FLAG],

  // The output: its choices, its limit and its end.
  ['n', { class: 'kept', configName: 'candidateCount', prompt: 'flag', isDefault: is(1) }],
  ['best_of', { class: 'kept', prompt: 'flag', isDefault: is(1), hidesOutput: true }],
  [
    'logprobs',
    {
      class: 'kept',
      configName: 'responseLogprobs',
      prompt: 'flag',
      hashed: 'uncounted',
      isDefault: is(false),
    },
  ],
  [
    'top_logprobs',
    {
      ...{ class: 'kept', configName: 'logprobs', prompt: 'flag', hashed: 'uncounted' },
      ...{ isDefault: is(0), saysNothing: 'as_default' },
    },
  ],
  ['max_tokens', { ...LIMIT, says: 6 }],
  ['max_completion_tokens', LIMIT],
  ['max_output_tokens', { ...LIMIT, configName: 'maxOutputTokens', ...COMPETING }],
  [
    `
    maxOutputTokens num_predict options n_cmpl max_new_tokens max_gen_len max_length max_tokens_to_sample
    num_return_sequences generation_config candidate_count candidateCount parameters sampling_params
    `,
    COMPETING,
  ],
  ['n_predict use_beam_search min_tokens', { ...FLAG, ...COMPETING }],
  ['extra_body', { ...STORED, ...COMPETING }],
  ['generationConfig', { class: 'kept', ...COMPETING }],
  [
    'stop',
    {
      ...{
        class: 'kept',
        configName: 'stopSequences',
        prompt: 'setting',
        hashed: 'uncounted',
        hidesOutput: true,
      },
      ...{ saysNothing: 'as_default' },
      isDefault: (value) => value === '' || (Array.isArray(value) && value.every((word) => word === '')),
    },
  ],
  ['stop_sequences', { class: 'kept', hashed: 'uncounted', hidesOutput: true }],
  ['stopSequences', { class: 'kept' }],
  ['stream', { class: 'kept', prompt: 'flag', hashed: 'uncounted' }],
  ['stream_options', { class: 'removed', prompt: 'setting', hashed: 'uncounted' }],
  ['echo', { ...FLAG, isDefault: is(false) }],
  [
    'modalities',
    {
      ...{ class: 'kept', prompt: 'setting', hidesOutput: true, hasApiWords: true },
      isDefault: (value) => Array.isArray(value) && value.length === 1 && value[0] === 'text',
    },
  ],
  ['audio', { class: 'kept', hidesOutput: true }],
  ['verbosity', { ...ABOUT, elsewhere: ['text.verbosity'], hasApiWords: true }],
  ['encoding_format', { ...SETTING, hasApiWords: true }],

  // About the request: who sent it, how it is billed, stored and cached.
  ['user safety_identifier metadata', { ...ABOUT, hashed: 'uncounted' }],
  [
    'service_tier',
    {
      ...{ ...ABOUT, hasApiWords: true, isDefault: is('auto'), isRemovable: is('auto') },
      // The pages of OpenAI and Groq (2026-11-22).
      plainTiers: ['auto', 'default', 'standard', 'standard_only', 'flex', 'on_demand'],
    },
  ],
  // https://platform.claude.com/docs/en/build-with-claude/fast-mode and /docs/en/manage-claude/data-residency (2026-11-22).
  ['speed', { ...SETTING, plainTiers: ['standard'] }],
  ['inference_geo', { ...SETTING, plainTiers: ['global'] }],
  [
    'store',
    {
      ...{ class: 'removed', optional: 'about_request', prompt: 'flag', isDefault: is(false) },
      // Without `store: false` a provider that knows the field stores.
      isRemovable: (value, isUnknownToHost) => value !== false || isUnknownToHost,
    },
  ],
  ['prompt_cache_key prompt_cache_retention prompt_cache_options', ABOUT],
  ['cache_control', { optional: 'about_request', prompt: 'setting' }],
  [
    'include',
    {
      ...{ class: 'removed', hasApiWords: true },
      isRemovable: (value) => readArray(value).every((entry) => readText(entry)?.startsWith('reasoning.')),
    },
  ],

  // What the provider reads besides the prompt, or shortens of it.
  ['web_search_options', { class: 'kept', reads: 'searches' }],
  ['search_parameters', { reads: 'searches' }],
  ['plugins preset data_sources thread cached_content cachedContent', STORED],
  [
    'previous_response_id conversation container mcp_servers context_management agent_id',
    { class: 'kept', ...STORED },
  ],
  ['truncation', { class: 'kept', shortensPrompt: true, hasApiWords: true }],
  // The last is OpenRouter's: https://openrouter.ai/docs/features/provider-routing (2026-11-23).
  ['truncate context_length_exceeded_behavior transforms', { ...SETTING, shortensPrompt: true }],
  ['background safetySettings', { class: 'kept' }],

  // Routing. Alternatives are bounded for themselves.
  ['model', { class: 'kept', prompt: 'setting', hasApiWords: true }],
  ['models', { class: 'kept', prompt: 'setting', routes: true }],
  ['route', { ...SETTING, routes: true }],
  ['fallbacks provider usage betas safety_settings', SETTING],

  // Of vLLM, SGLang and Fireworks.
  [
    `
    structured_outputs structural_tag regex ebnf guided_json guided_regex guided_choice guided_grammar
    bad_words stop_token_ids input_type task output_dtype cache_salt request_id keep_alive result_format
    `,
    SETTING,
  ],
  [
    `
    early_stopping ignore_eos skip_special_tokens add_special_tokens spaces_between_special_tokens
    include_stop_str_in_output truncate_prompt_tokens prompt_truncate_len prompt_cache_max_len
    prompt_logprobs return_tokens_as_token_ids return_token_ids return_hidden_states detokenize
    add_generation_prompt continue_final_message no_stop_trim raw_output perf_metrics_in_response
    dimensions output_dimension incremental_output deferred priority
    `,
    FLAG,
  ],

  // Of llama.cpp.
  ['grammar', { ...SETTING, hidesOutput: true }],
  ['json_schema samplers', SETTING],
  [
    `
    dynatemp_range dynatemp_exponent xtc_probability xtc_threshold repeat_last_n repeat_penalty
    dry_multiplier dry_base dry_allowed_length dry_penalty_last_n mirostat mirostat_tau mirostat_eta
    mirostat_target mirostat_lr n_indent n_keep n_probs min_keep t_max_predict_ms id_slot cache_prompt
    return_tokens post_sampling_probs timings_per_token return_progress
    `,
    FLAG,
  ],
];

const FIELDS: ReadonlyMap<string, Field> = new Map(
  ROWS.flatMap(([names, field]) => words(names).map((name) => [name, field] as const)),
);

const UNKNOWN: Field = {};

/** The facts of a field; none hold of one that is not known. */
export function fieldOf(name: string): Field {
  return FIELDS.get(name) ?? UNKNOWN;
}

/** The names of the fields of which a fact holds, in the order of the table. */
export function fieldsWhere(holds: (field: Field, name: string) => boolean): readonly string[] {
  const names: string[] = [];
  for (const [name, field] of FIELDS) if (holds(field, name)) names.push(name);
  return names;
}

/** The names of the fields with a number, from the lowest on. */
export function fieldsBy(numberOf: (field: Field) => number | undefined): readonly string[] {
  const numbered = [...FIELDS].flatMap(([name, field]) => {
    const number = numberOf(field);
    return number === undefined ? [] : [{ name, number }];
  });
  return numbered.sort((a, b) => a.number - b.number).map(({ name }) => name);
}
