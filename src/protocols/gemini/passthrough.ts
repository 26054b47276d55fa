/** Passthrough of generateContent requests and responses to Gemini and Vertex AI. */
import type { Chunk } from '../../canonical/chunk.ts';
import type { Usage } from '../../canonical/usage.ts';
import { PLACEHOLDER_SIGNATURE, signatureOfCall } from '../../request-translation/messages.ts';
import {
  EmbeddedJson,
  isObject,
  type JsonObject,
  objectOf,
  omit,
  parseJsonExactly,
  readArray,
  readText,
} from '../../shared/json.ts';
import type { FrameBuffer } from '../../stream/buffers.ts';
import type { StreamFailure, StreamWriter } from '../../stream/types.ts';
import type { Passthrough, PassthroughOptions } from '../shared/client-protocol.ts';
import { decodeStateBytes, type ReasoningState } from '../shared/reasoning-state.ts';
import { usageMetadata } from './client-candidates.ts';
import { errorElement, retryInfoOf } from './client-errors.ts';
import { type ClientForm, Elements, jsonIn } from './client-form.ts';
import { inCamelCase, withEnumNumbers } from './enums.ts';
import { modelPath } from './request-writer.ts';

/** @param form that of the client's responses; the provider streams server-sent events */
export function geminiPassthrough(form: ClientForm): Passthrough {
  return {
    protocol: 'generate_content',
    outputLimitField: 'generationConfig.maxOutputTokens',
    // Parts and tools of kinds that Weir does not know, and fields with which Google reads what it stores.
    promptFields: /^(?:contents|tools)\.|^(?:cachedContent|system|toolConfig)$/,
    compactsContext: () => false,
    requestHeaders: [],
    responseHeaders: [],
    upstreamBody: (body, { provider, needsSignatures }) => {
      const own = withOwnSignatures(body, provider);
      return needsSignatures ? withStandIns(own) : own;
    },
    limitable: withOneSpelling,
    withModel: (body, model) => (body.model === undefined ? body : { ...body, model: modelPath(model) }),
    streamWriter: (options) => new GeminiPassthroughWriter(form, options),
    writeJson: (response, options) => changed(response, form, options),
  };
}

/** Events from the first finish on that wait for the end, and their size in UTF-16 units. */
const MAX_HELD_EVENTS = 8;
const MAX_HELD_CHARS = 64 * 1024;

/**
 * Writes a stream's events as they came. From the first finish on they wait for the end of the stream: a cut stream has
 * no finish. If more output follows a finish than may wait, the finishes were none: they are removed, and only the last
 * event waits.
 */
class GeminiPassthroughWriter implements StreamWriter {
  readonly #form: ClientForm;
  readonly #options: PassthroughOptions;
  readonly #elements: Elements;
  #held: string[] = [];
  #heldChars = 0;
  /** Finishes of this provider do not mean the end. */
  #hasFalseFinishes = false;
  /** Of the event that failed the output. */
  #retry: JsonObject | null = null;
  #revision = 0;

  constructor(form: ClientForm, options: PassthroughOptions) {
    this.#form = form;
    this.#options = options;
    this.#elements = new Elements(form, options.maxEventBytes);
  }

  get output(): FrameBuffer {
    return this.#elements.output;
  }

  get revision(): number {
    return this.#revision;
  }

  readonly event = (_name: string, data: string, event: JsonObject): boolean => {
    const passed = changed(event, this.#form, this.#options);
    const json = passed === event ? data : JSON.stringify(passed);
    const isFull = this.#held.length >= MAX_HELD_EVENTS || this.#heldChars + json.length > MAX_HELD_CHARS;
    this.#hasFalseFinishes ||= isFull && this.#held.length > 0;
    const fits = isFull || (this.#hasFalseFinishes && hasOutput(event)) ? this.#release() : true;
    if (!hasFinish(event) && this.#held.length === 0) return this.#elements.write(json) && fits;
    this.#held.push(json);
    this.#heldChars += json.length;
    this.#revision++;
    return fits;
  };

  #release(): boolean {
    this.#heldChars = 0;
    return this.#held.splice(0).every((held) => this.#elements.write(withoutFinish(held)));
  }

  readonly limit = (usage: Usage): void => {
    const { promptTokens, requestId, model } = this.#options;
    this.#held = [];
    const content = { parts: [{ text: '' }], role: 'model' };
    const last = {
      candidates: [{ content, finishReason: 'MAX_TOKENS', index: 0 }],
      usageMetadata: usageMetadata(usage, promptTokens),
      modelVersion: model,
      responseId: requestId,
    };
    this.#elements.write(jsonIn(this.#form, last));
  };

  failedEvent(_data: string, event: JsonObject): void {
    this.#retry = retryInfoOf(event);
  }

  /** Chunks only count usage here: the client receives the events. */
  chunk(): boolean {
    return true;
  }

  vendor(): void {}

  end(failure: StreamFailure | null): void {
    if (failure === null) for (const event of this.#held) this.#elements.write(event);
    else this.#elements.write(errorElement(failure, this.#options.requestId, this.#retry));
    this.#elements.end();
  }

  heartbeat(): void {
    this.#elements.heartbeat();
  }

  restart(): void {
    this.#held = [];
    this.#heldChars = 0;
    this.#hasFalseFinishes = false;
    this.#retry = null;
    this.#elements.restart();
    this.#revision++;
  }

  /** Any text that depends only on the chunk. The fast path copies the provider's bytes: events, with the names of enums. */
  textFrame(chunk: Chunk): string | null {
    const isCopied = this.#form.kind === 'events' && !this.#form.hasEnumNumbers && this.#held.length === 0;
    return isCopied ? JSON.stringify(chunk) : null;
  }

  splice(literals: readonly Uint8Array[], source: Uint8Array, from: number, to: number): void {
    this.output.splice(literals, source, from, to);
  }
}

function candidatesOf(event: JsonObject): readonly JsonObject[] {
  return readArray(event.candidates).filter(isObject);
}

function hasFinish(event: JsonObject): boolean {
  return candidatesOf(event).some(({ finishReason }) => finishReason !== undefined && finishReason !== null);
}

function hasOutput(event: JsonObject): boolean {
  return candidatesOf(event).some(({ content }) =>
    readArray(objectOf(content).parts).some((part) => {
      const { text, ...others } = omit(objectOf(part), 'thought', 'thoughtSignature');
      return readText(text) !== undefined || Object.keys(others).length > 0;
    }),
  );
}

function withoutFinish(json: string): string {
  const event = parseJsonExactly(json);
  if (!isObject(event) || !hasFinish(event)) return json;
  const candidates = candidatesOf(event).map((candidate) => omit(candidate, 'finishReason', 'finishMessage'));
  return JSON.stringify({ ...event, candidates });
}

/** The response without the thoughts that a policy strips, in the client's form. The same object if it needs no change. */
function changed(
  response: JsonObject,
  { hasEnumNumbers }: ClientForm,
  { reasoning }: PassthroughOptions,
): JsonObject {
  const shown = reasoning === 'strip' ? withoutThoughts(response) : response;
  return hasEnumNumbers ? withEnumNumbers(shown) : shown;
}

/** Thoughts lose their text. A signature stays: the provider wants it back. */
function withoutThoughts(response: JsonObject): JsonObject {
  const isThought = (part: unknown) => objectOf(part).thought === true && objectOf(part).text !== undefined;
  const candidates = candidatesOf(response);
  if (!candidates.some(({ content }) => readArray(objectOf(content).parts).some(isThought))) return response;
  const stripped = candidates.map((candidate) => {
    const content = objectOf(candidate.content);
    const parts = readArray(content.parts).flatMap((part) => {
      if (!isThought(part)) return [part];
      return objectOf(part).thoughtSignature === undefined ? [] : [{ ...objectOf(part), text: '' }];
    });
    return { ...candidate, content: { ...content, parts } };
  });
  return { ...response, candidates: stripped };
}

/**
 * The body without states that Weir encoded: Google refuses them as signatures. Its own signature in one is written as
 * it was. A call of another provider's gets Google's placeholder, and a part with nothing but a state is left out.
 */
function withOwnSignatures(body: JsonObject, provider: string): JsonObject {
  const embedded = new EmbeddedJson();
  const contents = readArray(body.contents);
  let isChanged = false;
  const own = contents.map((content) => {
    if (!isObject(content) || !Array.isArray(content.parts)) return content;
    const parts = content.parts.flatMap((part: unknown) => {
      const states = isObject(part) ? statesOf(part, embedded) : null;
      if (!isObject(part) || states === null) return [part];
      isChanged = true;
      const rest = omit(part, 'thoughtSignature', 'thought_signature');
      const signature =
        signatureOf(states, provider) ??
        (inCamelCase(rest).functionCall === undefined ? undefined : PLACEHOLDER_SIGNATURE);
      if (signature !== undefined) return [{ ...rest, thoughtSignature: signature }];
      return rest.text === '' ? [] : [rest];
    });
    return { ...content, parts };
  });
  // Empty contents would be refused.
  const kept = own.filter((content) => !isObject(content) || readArray(content.parts ?? [1]).length > 0);
  return isChanged ? { ...body, contents: kept } : body;
}

/**
 * The body with a placeholder in each step since the last prompt whose calls have no signature, as those of other models. The model refuses
 * such steps (docs thought-signatures).
 */
function withStandIns(body: JsonObject): JsonObject {
  const contents = readArray(body.contents).map((content) => objectOf(content));
  const partsOf = contents.map((content) =>
    readArray(content.parts).map((part) => inCamelCase(objectOf(part))),
  );
  const prompt = contents.findLastIndex(
    ({ role }, at) => role !== 'model' && partsOf[at]?.some((part) => part.functionResponse === undefined),
  );
  /** Contents of the model in a row are one step, whose first call has the signature. */
  let isInStep = false;
  const signed = contents.map((content, at) => {
    const parts = partsOf[at] ?? [];
    const calls = parts.filter(({ functionCall }) => functionCall !== undefined);
    const isSigned = isInStep || calls.some(({ thoughtSignature }) => thoughtSignature !== undefined);
    isInStep = content.role === 'model' && (isInStep || calls.length > 0);
    const [first] = calls;
    if (first === undefined || isSigned || at < prompt) return content;
    const standIn = { ...first, thoughtSignature: PLACEHOLDER_SIGNATURE };
    return { ...content, parts: parts.map((part) => (part === first ? standIn : part)) };
  });
  return signed.some((content, at) => content !== contents[at]) ? { ...body, contents: signed } : body;
}

function statesOf(part: JsonObject, embedded: EmbeddedJson) {
  const signature = readText(part.thoughtSignature ?? part.thought_signature);
  return signature === undefined ? null : decodeStateBytes(signature, embedded);
}

/** This provider's signature in the states of a call. */
function signatureOf(states: readonly ReasoningState[], provider: string): string | undefined {
  for (const state of states) {
    const signature = 'call' in state ? signatureOfCall(state.extra_content) : undefined;
    if (signature?.provider === provider) return signature.value;
  }
  return undefined;
}

/** The body with one config in camel case, because a limit is set in one place. The same body if it has nothing in both spellings. */
function withOneSpelling(body: JsonObject): JsonObject {
  const { generation_config, ...rest } = body;
  const config = generation_config ?? body.generationConfig;
  const named = isObject(config) ? inCamelCase(config) : config;
  const hasTwoConfigs = generation_config !== undefined && body.generationConfig !== undefined;
  const repeatsField = Object.keys(objectOf(named)).length < Object.keys(objectOf(config)).length;
  return hasTwoConfigs || repeatsField ? { ...rest, generationConfig: named } : body;
}
