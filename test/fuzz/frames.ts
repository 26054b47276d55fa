/** Generates the JSON of upstream events, from a grammar in which any value may have any type. */
import { anyJson, anyString, chance, mostly, type Random, someOf } from './random.ts';

export function failure(random: Random): string {
  return someOf(random, [
    ['message', mostly(random, '"The server is busy"', anyString(random))],
    ['type', mostly(random, '"server_error"', '"timeout_error"', anyString(random)), 50],
    ['code', mostly(random, '"overloaded"', '429', '"503"', anyString(random)), 50],
    ['param', mostly(random, 'null', '"messages"'), 30],
  ]);
}

export function chunk(random: Random): string {
  const choices = Array.from({ length: chance(random, 90) ? 1 : random(5) }, () =>
    mostly(random, choice(random)),
  );
  return someOf(random, [
    ['id', mostly(random, '"c-1"', anyString(random)), 70],
    ['object', mostly(random, '"chat.completion.chunk"', '"text_completion"'), 70],
    ['created', mostly(random, '1700000000', '0'), 70],
    ['model', mostly(random, '"m"', anyString(random)), 70],
    ['service_tier', anyString(random), 5],
    ['system_fingerprint', mostly(random, '"fp"', 'null'), 20],
    ['choices', mostly(random, `[${choices.join(',')}]`)],
    ['usage', mostly(random, 'null', usage(random)), 20],
    ['x_groq', `{"usage":${usage(random)}}`, 3],
  ]);
}

function choice(random: Random): string {
  return someOf(random, [
    ['index', mostly(random, '0', '0', '0', '1')],
    ['delta', delta(random), 90],
    ['text', mostly(random, '"a"'), 20],
    [
      'logprobs',
      mostly(
        random,
        'null',
        '{"content":[{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[]}]}',
        '{"tokens":["a"],"token_logprobs":[-1]}',
      ),
      15,
    ],
    [
      'finish_reason',
      mostly(
        random,
        'null',
        'null',
        'null',
        'null',
        'null',
        'null',
        'null',
        '"stop"',
        '"tool_calls"',
        '"eos"',
      ),
      70,
    ],
  ]);
}

export function delta(random: Random): string {
  return someOf(random, [
    ['role', mostly(random, '"assistant"'), 20],
    [
      'content',
      mostly(
        random,
        '"a"',
        '"a"',
        anyString(random),
        'null',
        '[{"type":"text","text":"a"}]',
        '[{"type":"thinking","thinking":"t"}]',
      ),
      80,
    ],
    ['reasoning_content', mostly(random, anyString(random), 'null'), 20],
    ['reasoning', mostly(random, anyString(random)), 10],
    ['reasoning_details', mostly(random, '[{"type":"reasoning.text","text":"t"}]'), 10],
    ['refusal', mostly(random, 'null', anyString(random)), 5],
    [
      'tool_calls',
      `[${Array.from({ length: 1 + random(3) }, () => mostly(random, call(random))).join(',')}]`,
      20,
    ],
    ['function_call', mostly(random, '{"name":"f","arguments":"{}"}'), 3],
  ]);
}

function call(random: Random): string {
  return someOf(random, [
    ['index', mostly(random, '0', '1', '2', '1e9'), 80],
    ['id', mostly(random, '"call_1"', '"call_2"', anyString(random)), 60],
    ['type', mostly(random, '"function"'), 50],
    [
      'function',
      someOf(random, [
        ['name', mostly(random, '"f"', anyString(random)), 60],
        ['arguments', mostly(random, '"{}"', anyString(random), '{"1":{"2":3}}')],
      ]),
    ],
    ['extra_content', anyJson(random), 5],
  ]);
}

export function usage(random: Random): string {
  const count = () => mostly(random, '0', '7', '42', 'null', '1e30', '-1');
  return someOf(random, [
    ['prompt_tokens', count(), 90],
    ['completion_tokens', count(), 90],
    ['total_tokens', count(), 80],
    ['prompt_tokens_details', mostly(random, `{"cached_tokens":${count()}}`), 30],
    ['completion_tokens_details', mostly(random, `{"reasoning_tokens":${count()}}`), 30],
  ]);
}
