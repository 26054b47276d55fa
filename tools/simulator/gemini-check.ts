/** What Gemini's native API rejects, with Google's error texts: fields, turns, results, signatures, and settings of some model families. */
import { isObject, type Json, type JsonObject, objectOf, objectsOf, textOf } from './json.ts';
import type { Call } from './scene.ts';
import { firstMismatch, type Mismatch, type Shape } from './schema.ts';

/** https://ai.google.dev/gemini-api/docs/thought-signatures */
const SENTINEL = 'skip_thought_signature_validator';

/** JSON Schema keywords that `parameters`, an OpenAPI subset, does not have: CLIProxyAPI#97, brainlid#599 and more. */
const FOREIGN_WORDS = [
  ...['$schema', '$ref', 'additionalProperties', 'patternProperties', 'propertyNames', 'const'],
  ...['exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'uniqueItems', 'examples'],
];

/** Those of a request. */
export const FIELDS = [
  ...['contents', 'systemInstruction', 'tools', 'toolConfig', 'safetySettings', 'generationConfig'],
  ...['cachedContent', 'serviceTier', 'model', 'store'],
];

/** https://ai.google.dev/api/generate-content, read 2026-11-22. */
const SHAPE: Shape = {
  keys: FIELDS,
  inner: {
    contents: {
      keys: ['role', 'parts'],
      inner: {
        parts: {
          keys: [
            ...['text', 'inlineData', 'fileData', 'functionCall', 'functionResponse', 'thought'],
            ...['thoughtSignature', 'executableCode', 'codeExecutionResult', 'mediaResolution'],
          ],
          inner: {
            functionCall: { keys: ['id', 'name', 'args'] },
            functionResponse: { keys: ['id', 'name', 'response', 'parts', 'willContinue', 'scheduling'] },
            inlineData: { keys: ['mimeType', 'data', 'displayName'] },
            fileData: { keys: ['mimeType', 'fileUri'] },
          },
        },
      },
    },
    systemInstruction: { keys: ['role', 'parts'] },
    tools: {
      keys: ['functionDeclarations', 'googleSearch', 'codeExecution', 'urlContext'],
      inner: {
        functionDeclarations: {
          keys: ['name', 'description', 'parameters', 'parametersJsonSchema', 'behavior', 'response'],
          // Any JSON Schema: Gemini CLI 0.61.0 sends `$schema`, and google-gemini/gemini-cli#4196, 2025-07-15.
          inner: { parameters: schemaShape(4) },
        },
      },
    },
    toolConfig: {
      keys: ['functionCallingConfig', 'retrievalConfig'],
      inner: { functionCallingConfig: { keys: ['mode', 'allowedFunctionNames'] } },
    },
    generationConfig: {
      keys: [
        ...['temperature', 'topP', 'topK', 'maxOutputTokens', 'stopSequences', 'seed', 'presencePenalty'],
        ...['frequencyPenalty', 'candidateCount', 'responseMimeType', 'responseSchema', 'responseJsonSchema'],
        ...['responseLogprobs', 'logprobs', 'thinkingConfig', 'responseModalities', 'mediaResolution'],
      ],
      inner: { thinkingConfig: { keys: ['includeThoughts', 'thinkingLevel', 'thinkingBudget'] } },
    },
  },
};

function schemaShape(depth: number): Shape {
  if (depth === 0) return { refused: FOREIGN_WORDS };
  return { refused: FOREIGN_WORDS, inner: { items: schemaShape(depth - 1) } };
}

/** The error message of the 400 for this request, or undefined. */
export function geminiProblem({ body, model }: Call): string | undefined {
  const mismatch = firstMismatch(body, SHAPE);
  if (mismatch) return unknownName(mismatch);
  const contents = objectsOf(body.contents);
  if (contents.length === 0) return '* GenerateContentRequest.contents: contents is not specified\n';
  return (
    nameProblem(body) ??
    turnProblem(contents) ??
    signatureProblem(contents, model) ??
    configProblem(body, model)
  );
}

/** 21st-dev/magic-mcp#34, 2025-10-02. */
function nameProblem({ tools }: JsonObject): string | undefined {
  const names = objectsOf(tools)
    .flatMap((tool) => objectsOf(tool.functionDeclarations))
    .map(({ name }) => name);
  const at = names.findIndex((name) => !/^[A-Za-z_][\w.:-]{0,63}$/.test(textOf(name)));
  // google-gemini/gemini-cli#22207, 2026-03-12.
  const again = names.find((name, place) => names.indexOf(name) < place);
  if (again !== undefined) return `Duplicate function declaration found: ${textOf(again)}`;
  return at < 0
    ? undefined
    : `* GenerateContentRequest.tools[0].function_declarations[${at}].name: Invalid function name. Must start with a letter or an underscore.\n`;
}

function unknownName({ path }: Mismatch): string {
  const place = path.slice(0, -1).map((step) => (typeof step === 'number' ? `[${step}]` : `.${snake(step)}`));
  const at = place.length > 0 ? ` at '${place.join('').slice(1)}'` : '';
  return `Invalid JSON payload received. Unknown name "${textOf(path.at(-1))}"${at}: Cannot find field.`;
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * google-gemini/gemini-cli#16543 and #17208, 2026-01; the order: docs function-calling. A role "can be left blank or
 * unset", and is the user's then: `Content` of https://ai.google.dev/api/caching#Content and of Vertex AI's reference
 * (read 2026-11-28).
 */
function turnProblem(contents: readonly JsonObject[]): string | undefined {
  for (const [at, { role: given, parts }] of contents.entries()) {
    const role = (given ?? '') === '' ? 'user' : given;
    const all = objectsOf(parts);
    if (role !== undefined && role !== 'user' && role !== 'model')
      return 'Please use a valid role: user, model.';
    if (all.length === 0)
      return `* GenerateContentRequest.contents[${at}].parts: contents.parts must not be empty.\n`;
    if (all.some((part) => Object.keys(part).length === 0)) {
      return `* GenerateContentRequest.contents[${at}].parts[0].data: required oneof field 'data' must have one initialized field\n`;
    }
    const before = contents[at - 1];
    if (
      all.some((part) => isObject(part.functionCall)) &&
      (role !== 'model' || before === undefined || before.role === 'model')
    ) {
      return 'Please ensure that function call turn comes immediately after a user turn or after a function response turn.';
    }
    const problem = resultProblem(
      namesOf(before, 'functionCall'),
      namesOf(contents[at], 'functionResponse'),
      all,
    );
    if (problem) return problem;
  }
  return undefined;
}

function resultProblem(
  calls: readonly string[],
  results: readonly string[],
  parts: readonly JsonObject[],
): string | undefined {
  if (calls.length === 0 && results.length > 0) {
    return 'Please ensure that function response turn comes immediately after a function call turn.';
  }
  if (calls.length !== results.length) {
    return 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.';
  }
  if (calls.join() !== results.join()) {
    return 'Please ensure that the function response parts are in the order of the function call parts.';
  }
  const responses = parts.map((part) => objectOf(part.functionResponse));
  if (responses.some(({ name }) => name === '')) return 'function_response.name: Name cannot be empty.';
  const media = responses.flatMap((one) => objectsOf(one.parts));
  // `FunctionResponsePart` of the Gemini API has `inlineData` alone. The types are those of the guide to function calling.
  const foreign = media.find(
    ({ inlineData }) =>
      !/^(?:image\/(?:png|jpeg|webp)|application\/pdf|text\/plain)$/.test(
        textOf(objectOf(inlineData).mimeType),
      ),
  );
  if (foreign !== undefined) return 'Unsupported media in function_response.parts.';
  // vercel/ai#14369, reproduced 2026-07-02.
  const [, referenced] = /"\$ref":"([^"]*)"/.exec(JSON.stringify(responses.map((one) => one.response))) ?? [];
  return referenced === undefined
    ? undefined
    : `The referenced name \`${referenced}\` in function_response.response does not match to a display_name in the function_response.parts.`;
}

/** The name and the id, if any: both must match between a call and its result. */
function namesOf(content: JsonObject | undefined, key: 'functionCall' | 'functionResponse'): string[] {
  return objectsOf(content?.parts).flatMap((part) => {
    const call = part[key];
    return isObject(call) ? [`${textOf(call.name)} ${textOf(call.id)}`] : [];
  });
}

/**
 * The first call of each step of the current turn needs a signature (docs thought-signatures; securo#884, 2026-09-10).
 * An invalid one is rejected anywhere ("Thought signature is not valid": decolua/9router#301, 2026-03-13).
 */
function signatureProblem(contents: readonly JsonObject[], model: string): string | undefined {
  const lastPrompt = contents.findLastIndex(
    ({ role, parts }) =>
      role !== 'model' && objectsOf(parts).some((part) => part.functionResponse === undefined),
  );
  for (const [at, { parts }] of contents.entries()) {
    const calls = objectsOf(parts).filter((part) => isObject(part.functionCall));
    const [first] = calls;
    if (
      model.startsWith('gemini-3') &&
      at > lastPrompt &&
      first !== undefined &&
      first.thoughtSignature === undefined
    ) {
      const name = textOf(objectOf(first.functionCall).name);
      return `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${name}\` , position ${at + 1}.`;
    }
    const wrong = objectsOf(parts).find((part) => !isValid(part, model));
    if (wrong !== undefined) return 'Thought signature is not valid.';
  }
  return undefined;
}

function isValid(part: JsonObject, model: string): boolean {
  const given = part.thoughtSignature;
  // Only Gemini 3 checks them. It accepts those of all its models, because Gemini CLI changes the model within a conversation.
  if (given === undefined || given === SENTINEL || !model.startsWith('gemini-3')) return true;
  return given === signatureOf(isObject(part.functionCall) ? part.functionCall : null);
}

/**
 * Bound to the call's name and id, so that a misplaced signature is detected; with null, to the output's text. No source says that it is
 * bound to the arguments (checked 2026-11-22), which clients change.
 */
export function signatureOf(call: JsonObject | null): string {
  const about: Json = call === null ? 'text' : [textOf(call.name), textOf(call.id)];
  return Buffer.from(`signed ${JSON.stringify(about)}`).toString('base64');
}

/** tetsuo-ai/agenc-core#2393, 2026-09-11; js-genai#1609, 2026-05-18; generative-ai#135; MisakaNet#1473. */
function configProblem(body: JsonObject, model: string): string | undefined {
  const config = objectOf(body.generationConfig);
  const thinking = objectOf(config.thinkingConfig);
  const { thinkingLevel: level, thinkingBudget: budget } = thinking;
  if (level !== undefined && budget !== undefined) {
    return 'You can only set only one of thinking budget and thinking level.';
  }
  const stops = config.stopSequences;
  // continuedev/continue#2702, 2024-10-27.
  if (Array.isArray(stops) && stops.length > 5) return 'the number of stop_sequences must not exceed 5';
  const isNew = model.startsWith('gemini-3');
  if (level !== undefined && !isNew) return 'Thinking level is not supported for this model.';
  const levels = /gemini-3\.[78]/.test(model)
    ? ['low', 'medium', 'high']
    : ['minimal', 'low', 'medium', 'high'];
  // An enum: Google's SDKs send it in capitals.
  if (level !== undefined && !levels.includes(textOf(level).toLowerCase())) {
    return `Thinking level ${textOf(level).toUpperCase()} is not supported for this model. Please retry with other thinking level.`;
  }
  if (model.startsWith('gemini-2.0') && config.thinkingConfig !== undefined) {
    return `Thinking is not enabled for models/${model}`;
  }
  if (budget === 0 && thinking.includeThoughts === true) {
    return 'Unable to submit request because Thinking_config.include_thoughts is only enabled when thinking is enabled.';
  }
  if (isNew && Number(config.candidateCount ?? 1) > 1)
    return 'Multiple candidates is not enabled for this model';
  if (config.presencePenalty || config.frequencyPenalty) return 'Penalty is not enabled for this model';
  return config.responseLogprobs === true ? `Logprobs is not enabled for models/${model}` : undefined;
}
