/** Requests of each protocol with every list and nesting that readers and writers handle. The scaling test grows them. */
import type { Route } from '../../../src/providers/provider.ts';

export interface Sample {
  readonly name: string;
  readonly protocol: 'chat' | 'messages' | 'responses';
  readonly route: Route;
  readonly body: object;
}

const SCHEMA = {
  type: ['object', 'null'],
  description: 'd',
  properties: { a: { type: 'string', minLength: 1 }, b: { anyOf: [{ type: 'string' }] } },
  required: ['a'],
  enum: ['x'],
  oneOf: [{ type: 'object', maximum: 1 }],
  allOf: [{ type: 'string', pattern: '(?=a)' }],
  $defs: { d: { type: 'object' } },
  items: { type: 'string', format: 'odd' },
};
const STRICT = { type: 'object', properties: { a: { type: 'string', minLength: 1 } }, required: ['a'] };

const TOOLS = [
  { type: 'function', function: { name: 'f', description: 'd', parameters: STRICT, strict: true } },
  { type: 'custom', custom: { name: 'g' } },
];

const CHAT_MESSAGES = [
  { role: 'system', content: [{ type: 'text', text: 'Be brief' }] },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
      { type: 'file', file: { filename: 'a.txt', file_data: 'data:text/plain;base64,QUI=' } },
      { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } },
      { type: 'odd', odd: 'part' },
    ],
  },
  {
    role: 'assistant',
    content: [
      { type: 'text', text: 'Let me see' },
      { type: 'refusal', refusal: 'No' },
      { type: 'thinking', thinking: [{ type: 'text', text: 'Well' }] },
    ],
    reasoning_content: 'Well',
    reasoning_details: [
      { type: 'reasoning.text', text: 'W', signature: 's', format: 'anthropic-claude-v1', index: 0 },
      { type: 'reasoning.encrypted', data: 'd', format: 'google-gemini-v1', id: 'c' },
      { type: 'reasoning.encrypted', data: 'd', format: 'google-gemini-v1', id: 'weir1:gemini:text-1' },
      { type: 'reasoning.summary', summary: 'S', index: 1 },
      { type: 'reasoning.text', text: 'W' },
    ],
    thinking_blocks: [{ type: 'thinking', thinking: 'W', signature: 's' }],
    tool_calls: [
      {
        id: 'c',
        type: 'function',
        function: { name: 'f', arguments: '{"a":1}' },
        extra_content: { google: { thought_signature: 's' } },
      },
    ],
    annotations: [{ type: 'url_citation' }],
  },
  { role: 'tool', tool_call_id: 'c', content: [{ type: 'text', text: '{"a":1}' }] },
  { role: 'tool', tool_call_id: 'c', content: '{"a":1}' },
  { role: 'developer', content: 'Go on' },
  { role: 'user', content: 'Well?' },
];

const CHAT = {
  model: 'm',
  stream: true,
  messages: CHAT_MESSAGES,
  tools: TOOLS,
  tool_choice: {
    type: 'allowed_tools',
    allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'f' } }] },
  },
  response_format: { type: 'json_schema', json_schema: { name: 's', schema: SCHEMA, strict: true } },
  stop: ['end'],
  modalities: ['text'],
  logit_bias: { 1: 1 },
  metadata: { a: 'b', user_id: 'u', session_id: 's' },
  user: 'u',
  safety_identifier: 's',
  prompt_cache_key: 'k',
  service_tier: 'auto',
  reasoning_effort: 'low',
  fallbacks: [{ model: 'z' }],
  safety_settings: [{ category: 'c' }],
  generation_config: { stopSequences: ['x'] },
  extra_body: { google: { cached_content: 'c' } },
  web_search_options: { user_location: { type: 'approximate' } },
  unknown: [{ a: ['b'] }],
};

/** The legacy forms before tools. */
const LEGACY = {
  model: 'm',
  messages: [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{"a":1}' } },
    { role: 'function', name: 'f', content: '{"a":1}' },
  ],
  user: 'u',
  functions: [{ name: 'f', parameters: STRICT }],
  function_call: { name: 'f' },
};

const TEXT = { model: 'm', prompt: ['Once', 'upon'], suffix: 'end', stop: ['x'], logit_bias: { 1: 1 } };
const TOKENS = { model: 'm', prompt: [[1, 2], [3]] };

const MESSAGES = {
  model: 'm',
  max_tokens: 100,
  stream: true,
  system: [{ type: 'text', text: 'Be brief', cache_control: { type: 'ephemeral' } }],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Hi' },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } },
        { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'D' }] } },
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'D' } },
        { type: 'search_result', title: 't', source: 's', content: [{ type: 'text', text: 'R' }] },
        { type: 'odd', odd: 'block' },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'W', signature: 's' },
        { type: 'redacted_thinking', data: 'd' },
        { type: 'text', text: 'Let me see' },
        { type: 'tool_use', id: 'toolu_c', name: 'f', input: { a: [1] } },
        { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
        { type: 'compaction', content: 'What was said' },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_c', content: [{ type: 'text', text: '{"a":1}' }] },
        { type: 'tool_result', tool_use_id: 'toolu_c', content: '{"a":1}', is_error: true },
        {
          type: 'tool_result',
          tool_use_id: 'toolu_c',
          content: [{ type: 'tool_reference', tool_name: 'f' }],
        },
      ],
    },
    { role: 'system', content: [{ type: 'text', text: 'Go on' }] },
    { role: 'user', content: 'Well?' },
  ],
  tools: [
    { name: 'f', description: 'd', input_schema: STRICT, strict: true },
    { type: 'web_search_20250305', name: 'web_search' },
  ],
  tool_choice: { type: 'tool', name: 'f' },
  stop_sequences: ['end'],
  output_config: { format: { type: 'json_schema', schema: SCHEMA } },
  metadata: { user_id: 'u' },
  mcp_servers: [{ name: 'm' }],
  unknown: [{ a: ['b'] }],
};

const RESPONSES = {
  model: 'm',
  stream: true,
  instructions: 'Be brief',
  input: [
    {
      type: 'message',
      role: 'user',
      content: [
        { type: 'input_text', text: 'Hi' },
        { type: 'input_image', image_url: 'data:image/png;base64,AA==' },
        { type: 'input_file', filename: 'a.txt', file_data: 'data:text/plain;base64,QUI=' },
        { type: 'odd', odd: 'part' },
      ],
    },
    {
      type: 'reasoning',
      id: 'rs_1',
      summary: [{ type: 'summary_text', text: 'W' }],
      content: [{ type: 'reasoning_text', text: 'W' }],
      encrypted_content: 'e',
    },
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Let me see' }] },
    { type: 'function_call', call_id: 'c', name: 'f', arguments: '{"a":1}' },
    { type: 'custom_tool_call', call_id: 'd', name: 'g', input: 'i' },
    { type: 'function_call_output', call_id: 'c', output: '{"a":1}' },
    { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: '{"a":1}' }] },
    { type: 'custom_tool_call_output', call_id: 'd', output: 'o' },
    { type: 'odd', odd: 'item' },
    { type: 'additional_tools', tools: [{ type: 'function', name: 'h', parameters: STRICT }] },
    { role: 'user', content: 'Well?' },
  ],
  tools: [
    { type: 'function', name: 'f', description: 'd', parameters: STRICT, strict: true },
    { type: 'custom', name: 'g', format: { type: 'grammar', syntax: 'lark', definition: 'g' } },
    {
      type: 'namespace',
      name: 'n',
      description: 'd',
      tools: [{ type: 'function', name: 'f', parameters: STRICT }],
    },
    { type: 'web_search' },
  ],
  tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'f' }] },
  include: ['reasoning.encrypted_content'],
  text: { format: { type: 'json_schema', name: 's', schema: SCHEMA, strict: true } },
  metadata: { a: 'b' },
  user: 'u',
  safety_identifier: 's',
  prompt_cache_key: 'k',
  service_tier: 'auto',
  reasoning: { effort: 'low' },
  unknown: [{ a: ['b'] }],
};

export const SAMPLES: readonly Sample[] = [
  { name: 'chat', protocol: 'chat', route: 'chat', body: CHAT },
  { name: 'chat, legacy', protocol: 'chat', route: 'chat', body: LEGACY },
  { name: 'completions', protocol: 'chat', route: 'completions', body: TEXT },
  { name: 'completions of tokens', protocol: 'chat', route: 'completions', body: TOKENS },
  { name: 'fim', protocol: 'chat', route: 'fim', body: { ...TEXT, prompt: 'Once' } },
  { name: 'agents', protocol: 'chat', route: 'agents', body: { ...LEGACY, agent_id: 'a' } },
  { name: 'messages', protocol: 'messages', route: 'chat', body: MESSAGES },
  { name: 'responses', protocol: 'responses', route: 'chat', body: RESPONSES },
];
