/** Generates invalid streams from valid ones, and random streams: input of the property tests. */
import fc from 'fast-check';

/** One edit of a stream's bytes. `at` and `other` are parts of its length, so that one edit fits every stream. */
interface Edit {
  readonly kind: 'flip' | 'delete' | 'duplicate' | 'insert' | 'swap';
  readonly at: number;
  readonly length: number;
  readonly bytes: Uint8Array;
}

const encoder = new TextEncoder();

/** Bytes that break a stream more often than random ones. */
const TRICKS = [
  '\n',
  '\r',
  '\n\n',
  '\r\n',
  ':',
  '"',
  '{',
  '}',
  '[',
  ']',
  ',',
  '\\',
  'null',
  'data: ',
  '0',
  '-1',
]
  .concat(
    'event: error\n',
    'event: x_a\n',
    '[DONE]',
    '\n\ndata: [DONE]\n\n',
    '\uFEFF',
    'x_',
    '1e999',
    '{}',
    '[]',
  )
  .map((text) => encoder.encode(text));

const edit: fc.Arbitrary<Edit> = fc.record({
  kind: fc.constantFrom('flip', 'delete', 'duplicate', 'insert', 'swap'),
  at: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
  length: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 400 })),
  bytes: fc.oneof(fc.constantFrom(...TRICKS), fc.uint8Array({ minLength: 1, maxLength: 6 })),
});

export const edits: fc.Arbitrary<readonly Edit[]> = fc.array(edit, { minLength: 1, maxLength: 4 });

export function mutate(bytes: Uint8Array, edits: readonly Edit[]): Uint8Array {
  return edits.reduce(applyEdit, bytes);
}

function applyEdit(bytes: Uint8Array, { kind, at, length, bytes: more }: Edit): Uint8Array {
  const start = Math.floor(at * bytes.length);
  const before = bytes.subarray(0, start);
  const piece = bytes.subarray(start, start + length);
  const after = bytes.subarray(start + length);
  if (kind === 'delete') return joinBytes([before, after]);
  if (kind === 'duplicate') return joinBytes([before, piece, piece, after]);
  if (kind === 'insert') return joinBytes([before, more, piece, after]);
  if (kind === 'swap') return joinBytes([before, more, after]);
  return joinBytes([before, piece.map((byte, i) => byte ^ (more[i] ?? 0)), after]);
}

function joinBytes(pieces: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(Buffer.concat(pieces));
}

/** Splits bytes into reads of these sizes, repeated in order. */
export function cutInto(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const reads: Uint8Array[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    reads.push(bytes.subarray(at, at + size));
    at += size;
  }
  return reads;
}

export const readSizes: fc.Arbitrary<readonly number[]> = fc.array(
  fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 300 })),
  { minLength: 1, maxLength: 20 },
);

/** A value that is mostly valid, and sometimes any JSON. */
function mostly(...usual: readonly fc.Arbitrary<unknown>[]): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 8, arbitrary: fc.oneof(...usual) }, { weight: 1, arbitrary: fc.jsonValue() });
}

/** An object with some of these keys. */
function some(model: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<unknown> {
  return fc.record(model, { requiredKeys: [] });
}

const text = mostly(fc.constantFrom('', 'a', 'Hello', 'é€𝄞', ' \n"'), fc.constant(null));
const index = mostly(fc.integer({ min: 0, max: 3 }));
const count = mostly(fc.integer({ min: 0, max: 99 }), fc.constant(null));
const call = some({
  index,
  id: mostly(fc.constantFrom('call_1', 'call_2', 'null', '')),
  function: mostly(some({ name: mostly(fc.constantFrom('f', 'g', '')), arguments: text })),
  extra_content: mostly(fc.constant({ google: { thought_signature: 'EsQBCk' } }), fc.constant(null)),
});
const detail = some({
  type: mostly(fc.constantFrom('reasoning.text', 'reasoning.encrypted')),
  text,
  summary: text,
  signature: text,
  data: text,
  index,
});
const entry = { token: text, logprob: mostly(fc.constant(-0.5)), bytes: mostly(fc.constant([97])) };
const logprob = some({ ...entry, top_logprobs: mostly(fc.array(some(entry), { maxLength: 2 })) });
const logprobs = mostly(
  fc.constant(null),
  some({ content: mostly(fc.array(logprob, { maxLength: 2 })), refusal: fc.constant(null) }),
  some({ tokens: mostly(fc.array(text, { maxLength: 2 })), token_logprobs: mostly(fc.array(fc.double())) }),
);
const content = mostly(
  text,
  fc.array(some({ type: fc.constantFrom('text', 'thinking'), text, thinking: text })),
);
const delta = some({
  role: mostly(fc.constant('assistant')),
  content,
  reasoning_content: text,
  reasoning: text,
  refusal: text,
  tool_calls: mostly(fc.array(mostly(call), { maxLength: 3 })),
  function_call: mostly(some({ name: text, arguments: text })),
  reasoning_details: mostly(fc.array(mostly(detail), { maxLength: 2 })),
});
const finish = mostly(fc.constant(null), fc.constantFrom('stop', 'length', 'eos', 'tool_calls', 'error'));
const usage = mostly(
  fc.constant(null),
  some({
    prompt_tokens: count,
    completion_tokens: count,
    total_tokens: count,
    prompt_tokens_details: mostly(some({ cached_tokens: count, cache_write_tokens: count })),
    num_cached_tokens: count,
    completion_tokens_details: mostly(some({ reasoning_tokens: count, audio_tokens: count })),
  }),
);
const choice = mostly(some({ index, delta: mostly(delta), text, logprobs, finish_reason: finish, usage }));
const event = some({
  id: text,
  object: mostly(fc.constantFrom('chat.completion.chunk', 'text_completion', 'error')),
  created: mostly(fc.constantFrom(0, 1_764_700_000, 1_764_700_000_123)),
  model: text,
  service_tier: text,
  system_fingerprint: text,
  choices: mostly(fc.array(choice, { maxLength: 3 })),
  usage,
  x_groq: some({ usage }),
});
const failure = some({ error: mostly(text, some({ message: text, type: text, code: mostly(text, count) })) });
const vendor = some({ type: fc.constantFrom('x_a.b', 'x_chat.metadata'), usage });
const named = some({ choices: text, error: text, object: text, a: text });

const lines = fc.oneof(
  { weight: 12, arbitrary: mostly(event).map((value) => `data: ${JSON.stringify(value)}\n\n`) },
  { weight: 1, arbitrary: failure.map((value) => `data: ${JSON.stringify(value)}\n\n`) },
  { weight: 1, arbitrary: vendor.map((value) => `data: ${JSON.stringify(value)}\n\n`) },
  { weight: 1, arbitrary: named.map((value) => `event: x_a\ndata: ${JSON.stringify(value)}\n\n`) },
  { weight: 1, arbitrary: fc.constantFrom(': hi\n\n', 'data: [DONE]\n\n', 'data: 1\n\n') },
);

/** Placeholder for bytes that are not UTF-8, until the text is encoded. */
const NO_UTF8 = '\uE000';

const goodText = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }).map((value) => JSON.stringify(value)),
  fc.constantFrom('"a"', '"é€𝄞"', '"\\n\\u0041\\ud834"', '""', '"text"', '"thinking"', '"error"', '"chunk"'),
);

/** Almost valid JSON strings, and other values. */
const badText = fc.constantFrom(
  ...[
    '"\\x"',
    '"\\u00g0"',
    '"a"}',
    '"\t"',
    '"\u0001"',
    '"',
    `"${NO_UTF8}"`,
    '"\\"',
    '"a" ',
    'null',
    '1',
    '[]',
  ],
);

/** Envelopes of frames with one text and nothing else, as most frames of a stream are. */
const envelope = fc.constantFrom(
  '{"id":"a","choices":[{"index":0,"delta":{"content":TEXT},"finish_reason":null}]}',
  '{"id":"a","content":OTHER,"choices":[{"delta":{"content":TEXT,"reasoning":null},"index":0}]}',
  '{"choices":[{"index":1,"delta":{"reasoning_content":TEXT}}],"system_fingerprint":"f"}',
  '{"choices":[{"index":0,"delta":{"reasoning":OTHER,"reasoning_content":TEXT}}]}',
  '{"choices":[{"index":0,"text":TEXT,"logprobs":null}],"obfuscation":OTHER}',
  '{"choices":[{"index":0,"delta":{"content":TEXT},"message":{"content":OTHER}}],"usage":null}',
  '{"choices":[{"index":0,"delta":{"content":TEXT,"refusal":OTHER}}]}',
  '{"choices":[{"index":0,"delta":{"reasoning":TEXT,"reasoning_details":[{"type":"reasoning.text","text":OTHER}]}}]}',
  '{"choices":[{"index":0,"delta":{"reasoning":TEXT,"reasoning_content":TEXT,"reasoning_details":[{"text":TEXT}]}}]}',
  '{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":OTHER}],"reasoning_content":TEXT}}]}',
  '{"type":OTHER,"object":"chunk","choices":[{"index":0,"delta":{"content":TEXT}}]}',
);

function frameOf(frame: string, text: string, other: string): string {
  return `data: ${frame.replaceAll('TEXT', () => text).replace('OTHER', () => other)}\n\n`;
}

/** Several kinds of invalid UTF-8. */
const NO_UTF8_BYTES = [[0xff], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82]];

function encodeBroken(text: string, kind: number): Uint8Array {
  const pieces = text.split(NO_UTF8).map((piece) => encoder.encode(piece));
  const broken = Uint8Array.from(NO_UTF8_BYTES[kind] ?? []);
  return joinBytes(pieces.flatMap((piece, i) => (i === 0 ? [piece] : [broken, piece])));
}

/** Streams of frames of one or two kinds that differ only in their text, then an invalid one, then more. */
export const textStreams: fc.Arbitrary<Uint8Array> = fc
  .record({
    kinds: fc.tuple(envelope, envelope),
    texts: fc.array(fc.tuple(fc.boolean(), goodText, goodText), { minLength: 3, maxLength: 12 }),
    between: fc.oneof(lines, fc.constant('')),
    bad: fc.tuple(badText, goodText),
    noUtf8: fc.nat(NO_UTF8_BYTES.length - 1),
  })
  .map(({ kinds: [one, two], texts, between, bad: [bad, other], noUtf8 }) => {
    const frames = texts.map(([isOne, text, beside]) => frameOf(isOne ? one : two, text, beside));
    const text = [...frames, frameOf(one, bad, other), between, ...frames].join('');
    return encodeBroken(text, noUtf8);
  });

/** Streams of well-formed events whose fields may have any value. */
export const anyEvents: fc.Arbitrary<Uint8Array> = fc
  .array(lines, { maxLength: 12 })
  .map((pieces) => encoder.encode(pieces.join('')));
