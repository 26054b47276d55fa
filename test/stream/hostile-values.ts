/** Test data: extreme values, and the positions of a chunk in which they can occur. */

/** JSON texts, because JSON.stringify cannot write most of these. */
export const VALUES: Readonly<Record<string, string>> = {
  'a __proto__ object': '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}',
  'an object whose methods are data': '{"toString":1,"valueOf":1,"toJSON":1,"then":1,"length":-1,"join":1}',
  'the word __proto__': '"__proto__"',
  'the word constructor': '"constructor"',
  '1e999': '1e999',
  '-1e999': '-1e999',
  '1e308': '1e308',
  '-0': '-0',
  '2^53 - 1': '9007199254740991',
  '2^60': '1152921504606846976',
  'a fraction': '0.1',
  'a negative number': '-7',
  'lone surrogates': '"\\ud800 and \\udc00"',
  'an escaped NUL': '"a\\u0000b"',
  'escaped line ends': '"a\\r\\n\\ndata: [DONE]\\u2028\\u2029b"',
  null: 'null',
  true: 'true',
  'an empty text': '""',
  'an empty list': '[]',
  'an empty object': '{}',
  'lists in lists': '[[["a"]],[{}],[null],[1]]',
  'a list of what is none': '[null,1,"a",true,[],{}]',
};

const CALL = '{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}';
const TOKEN = '{"token":"a","logprob":-1,"bytes":[97],"top_logprobs":[]}';

function choice(members: string): string {
  return `{"choices":[{"index":0,${members}}]}`;
}

function call(key: string, value: string): string {
  return choice(`"delta":{"tool_calls":[${CALL.replace(/^\{/, `{"${key}":${value},`)}]}`);
}

/** One data event each, with the value in its position. A duplicate key has its last value. */
export const PLACES: Readonly<Record<string, (value: string) => string>> = {
  'the event': (value) => value,
  id: (value) => `{"id":${value},"choices":[]}`,
  object: (value) => `{"object":${value},"choices":[]}`,
  created: (value) => `{"created":${value},"choices":[{"index":0,"delta":{"content":"a"}}]}`,
  model: (value) => `{"model":${value},"choices":[{"index":0,"delta":{"content":"a"}}]}`,
  service_tier: (value) => `{"service_tier":${value},"choices":[{"index":0,"delta":{"content":"a"}}]}`,
  system_fingerprint: (value) => `{"system_fingerprint":${value},"choices":[{"delta":{"content":"a"}}]}`,
  type: (value) => `{"type":${value},"choices":[]}`,
  error: (value) => `{"error":${value}}`,
  'error.message': (value) => `{"error":{"message":${value}}}`,
  'error.code': (value) => `{"error":{"message":"m","code":${value}}}`,
  'error.type': (value) => `{"error":{"message":"m","type":${value}}}`,
  'error.param': (value) => `{"error":{"message":"m","param":${value}}}`,
  detail: (value) => `{"detail":${value}}`,
  'detail[].loc[]': (value) => `{"detail":[{"loc":[${value}],"msg":"m"}]}`,
  'detail[].msg': (value) => `{"detail":[{"loc":["a"],"msg":${value}}]}`,
  usage: (value) => `{"choices":[],"usage":${value}}`,
  'usage.prompt_tokens': (value) => `{"choices":[],"usage":{"prompt_tokens":${value}}}`,
  'usage.completion_tokens': (value) => `{"choices":[],"usage":{"completion_tokens":${value}}}`,
  'usage.total_tokens': (value) => `{"choices":[],"usage":{"total_tokens":${value}}}`,
  'usage.num_cached_tokens': (value) => `{"choices":[],"usage":{"num_cached_tokens":${value}}}`,
  'usage.cached_tokens': (value) =>
    `{"choices":[],"usage":{"prompt_tokens_details":{"cached_tokens":${value},"cache_write_tokens":${value}}}}`,
  'usage.prompt_tokens_details': (value) => `{"choices":[],"usage":{"prompt_tokens_details":${value}}}`,
  x_groq: (value) => `{"choices":[],"x_groq":${value}}`,
  choices: (value) => `{"choices":${value}}`,
  'choices[]': (value) => `{"choices":[${value}]}`,
  'choice.index': (value) => `{"choices":[{"delta":{"content":"a"},"index":${value}}]}`,
  'choice.delta': (value) => choice(`"delta":${value}`),
  'choice.message': (value) => choice(`"message":${value}`),
  'choice.text': (value) => choice(`"text":${value}`),
  'choice.usage': (value) => choice(`"delta":{},"usage":${value}`),
  'choice.finish_reason': (value) => choice(`"delta":{},"finish_reason":${value}`),
  'delta.role': (value) => choice(`"delta":{"role":${value}}`),
  'delta.content': (value) => choice(`"delta":{"content":${value}}`),
  'delta.content[].text': (value) => choice(`"delta":{"content":[{"type":"text","text":${value}}]}`),
  'delta.content[].thinking': (value) =>
    choice(`"delta":{"content":[{"type":"thinking","thinking":${value}}]}`),
  'delta.reasoning_content': (value) => choice(`"delta":{"reasoning_content":${value}}`),
  'delta.reasoning_details': (value) => choice(`"delta":{"reasoning_details":${value}}`),
  'delta.reasoning_details[]': (value) => choice(`"delta":{"reasoning_details":[${value}]}`),
  'detail.text': (value) =>
    choice(`"delta":{"reasoning_details":[{"type":"reasoning.text","text":${value}}]}`),
  'detail.signature': (value) => choice(`"delta":{"reasoning_details":[{"text":"a","signature":${value}}]}`),
  'delta.refusal': (value) => choice(`"delta":{"refusal":${value}}`),
  'delta.tool_calls': (value) => choice(`"delta":{"tool_calls":${value}}`),
  'delta.tool_calls[]': (value) => choice(`"delta":{"tool_calls":[${value}]}`),
  'delta.function_call': (value) => choice(`"delta":{"function_call":${value}}`),
  'call.index': (value) => call('index', value).replace('"index":0,"id"', '"id"'),
  'call.id': (value) => call('id', value).replace('"id":"c",', ''),
  'call.extra_content': (value) => call('extra_content', value),
  'extra_content.google': (value) => call('extra_content', `{"google":${value}}`),
  'call.function': (value) => choice(`"delta":{"tool_calls":[{"index":0,"id":"c","function":${value}}]}`),
  'call.name': (value) =>
    choice(`"delta":{"tool_calls":[{"index":0,"function":{"name":${value},"arguments":""}}]}`),
  'call.arguments': (value) =>
    choice(`"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":${value}}}]}`),
  logprobs: (value) => choice(`"delta":{"content":"a"},"logprobs":${value}`),
  'logprobs.content': (value) => choice(`"delta":{"content":"a"},"logprobs":{"content":${value}}`),
  'logprobs.content[]': (value) => choice(`"delta":{"content":"a"},"logprobs":{"content":[${value}]}`),
  'token.token': (value) =>
    choice(`"delta":{"content":"a"},"logprobs":{"content":[${TOKEN.replace('"a"', value)}]}`),
  'token.logprob': (value) =>
    choice(`"delta":{"content":"a"},"logprobs":{"content":[${TOKEN.replace('-1', value)}]}`),
  'token.bytes': (value) =>
    choice(`"delta":{"content":"a"},"logprobs":{"content":[${TOKEN.replace('[97]', value)}]}`),
  'token.top_logprobs': (value) =>
    choice(`"delta":{"content":"a"},"logprobs":{"content":[${TOKEN.replace('[]', value)}]}`),
  'logprobs.tokens': (value) => choice(`"text":"a","delta":{"content":"a"},"logprobs":{"tokens":${value}}`),
  'logprobs.tokens[]': (value) =>
    choice(`"text":"a","delta":{"content":"a"},"logprobs":{"tokens":[${value}],"token_logprobs":[-1]}`),
  'logprobs.top_logprobs': (value) =>
    choice(`"text":"a","delta":{"content":"a"},"logprobs":{"tokens":["a"],"top_logprobs":[${value}]}`),
  'logprobs.text_offset': (value) =>
    choice(`"text":"a","delta":{"content":"a"},"logprobs":{"tokens":["a"],"text_offset":[${value}]}`),
};
