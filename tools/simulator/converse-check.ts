/**
 * What Bedrock's Converse refuses, in its words where they are known: alternating turns, blank texts, calls without
 * tools or results, names of documents (recorded and documented, 2026-11-28), and what families of models refuse
 * (`../shared/studies/reach.md`, 1.3).
 */
import { type JsonObject, objectOf, objectsOf, textOf } from './json.ts';

const FIELDS = [
  ...['messages', 'system', 'inferenceConfig', 'toolConfig', 'additionalModelRequestFields'],
  ...['additionalModelResponseFieldPaths', 'guardrailConfig', 'performanceConfig', 'promptVariables'],
  ...['requestMetadata', 'serviceTier', 'outputConfig'],
];
const BLOCKS = [
  ...['text', 'image', 'document', 'video', 'toolUse', 'toolResult', 'reasoningContent', 'cachePoint'],
  ...['guardContent', 'searchResult', 'citationsContent', 'audio'],
];
/** https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolResultContentBlock.html (2026-11-29) */
const RESULT_BLOCKS = ['text', 'json', 'image', 'document', 'video', 'searchResult'];
/** https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_SystemContentBlock.html (2026-11-29) */
const SYSTEM_BLOCKS = ['text', 'cachePoint', 'guardContent'];
/**
 * "You can only include images and documents if the role is user":
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html (2026-11-29)
 */
const OF_USER = ['image', 'document', 'video', 'toolResult'];
const OF_ASSISTANT = ['toolUse', 'citationsContent', 'reasoningContent'];
/** https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_DocumentBlock.html and _DocumentSource (2026-11-29) */
const FORMATS = ['pdf', 'csv', 'doc', 'docx', 'xls', 'xlsx', 'html', 'txt', 'md'];
const SOURCES = ['bytes', 's3Location', 'text', 'content'];

/** What a family refuses. Of cache points: anomalyco/opencode#36517 (2026-07-12), aws/aws-sdk-java-v2#6277 (2026-08-05). */
export interface ConverseModel {
  /** Reasoning may go back: signed, as a text, or not at all. */
  readonly reasoning: 'signed' | 'texts' | 'none';
  readonly callIds: RegExp;
  readonly takesNamedChoice: boolean;
  readonly takesDefinitions: boolean;
  readonly cachePoints: 'everywhere' | 'outside tools' | 'nowhere';
  readonly takesCitations?: true;
}

/** The message of a 400, or undefined: the request is valid. */
export function converseProblem(body: JsonObject, model: ConverseModel): string | undefined {
  const unknown = Object.keys(body).find((field) => !FIELDS.includes(field));
  if (unknown !== undefined) return `Malformed input request: extraneous key [${unknown}] is not permitted`;
  const messages = objectsOf(body.messages);
  if (messages[0]?.role !== 'user')
    return 'A conversation must start with a user message. Try again with a conversation that starts with a user message.';
  for (const [at, { role, content }] of messages.entries()) {
    if (role !== (at % 2 === 0 ? 'user' : 'assistant'))
      return 'A conversation must alternate between user and assistant roles.';
    const blocks = objectsOf(content);
    const foreign = role === 'user' ? OF_ASSISTANT : OF_USER;
    const kind = blocks.flatMap((block) => Object.keys(block)).find((one) => foreign.includes(one));
    if (kind !== undefined)
      return `The ContentBlock object at messages.${at}.content has ${kind}, which the role ${textOf(role)} may not have.`;
    const problem = contentProblem(blocks, `messages.${at}.content`, model);
    if (problem !== undefined) return problem;
    const hasDocument = blocks.some(({ document }) => document !== undefined);
    if (hasDocument && !blocks.some(({ text }) => text !== undefined))
      return 'A text block is required when a document is included in the message.';
  }
  return (
    systemProblem(objectsOf(body.system)) ??
    citationsProblem(messages) ??
    callsProblem(messages, body) ??
    toolsProblem(objectOf(body.toolConfig), model) ??
    namesProblem(messages)
  );
}

function contentProblem(
  content: readonly JsonObject[],
  path: string,
  model: ConverseModel,
  kinds: readonly string[] = BLOCKS,
): string | undefined {
  if (content.length === 0)
    return `The content field in the Message object at ${path.replace('.content', '')} is empty. Add a ContentBlock object to the content field and try again.`;
  for (const [at, block] of content.entries()) {
    const [kind = '', ...others] = Object.keys(block);
    if (!kinds.includes(kind) || others.length > 0)
      return `The ContentBlock object at ${path}.${at} must set one of the following keys: ${kinds.join(', ')}.`;
    const document = documentProblem(
      objectOf(block.document),
      `${path}.${at}`,
      model,
      kinds === RESULT_BLOCKS,
    );
    if (kind === 'document' && document !== undefined) return document;
    if (kind === 'text' && textOf(block.text).trim() === '')
      return `The text field in the ContentBlock object at ${path}.${at} is blank. Add text to the text field, and try again.`;
    if (kind === 'cachePoint' && model.cachePoints === 'nowhere')
      return 'You invoked an unsupported model or your request did not allow prompt caching.';
    const before = content[at - 1] ?? {};
    if (kind === 'cachePoint' && before.reasoningContent !== undefined)
      return 'Cache point cannot be inserted after reasoning block. Please remove the invalid cache point and try again.';
    const { format = 'pdf' } = objectOf(before.document);
    if (kind === 'cachePoint' && model.reasoning === 'signed' && format !== 'pdf')
      return `The model returned the following errors: ${path}.${at}.type: Field required`;
    if (kind === 'reasoningContent') {
      const { reasoningText, redactedContent } = objectOf(block.reasoningContent);
      if (model.reasoning === 'none')
        return 'User messages cannot contain reasoning content. Please remove the reasoning content and try again.';
      const { signature } = objectOf(reasoningText);
      if (model.reasoning === 'signed' && signature === undefined && redactedContent === undefined)
        return `${path}.${at}: Invalid \`signature\` in \`thinking\` block`;
    }
    if (kind === 'toolResult') {
      const inner = contentProblem(
        objectsOf(objectOf(block.toolResult).content),
        `${path}.${at}.toolResult.content`,
        model,
        RESULT_BLOCKS,
      );
      if (inner !== undefined) return inner;
    }
  }
  return undefined;
}

function documentProblem(
  { format, source, citations }: JsonObject,
  path: string,
  model: ConverseModel,
  isInResult: boolean,
): string | undefined {
  const [kind = '', ...others] = Object.keys(objectOf(source));
  if (!SOURCES.includes(kind) || others.length > 0)
    return `The DocumentSource object at ${path}.document.source must set one of the following keys: ${SOURCES.join(', ')}.`;
  if (!FORMATS.includes(textOf(format)))
    return `Value at '${path}.document.format' failed to satisfy constraint: Member must satisfy enum value set: [${FORMATS.join(', ')}]`;
  if (objectOf(citations).enabled !== true) return undefined;
  // boto/boto3#4648, 2025-10-27.
  if (isInResult) return 'Citations are not supported in tool result documents.';
  // boto/boto3#4608, 2025-09-04.
  if (model.takesCitations !== true) return "This model doesn't support citations.";
  // Both: boto/boto3#4726, 2026-02-24.
  if (format !== 'pdf' && format !== 'txt')
    return 'Unsupported document format. Only txt and pdf formats are supported when citations are enabled';
  return format === 'txt' && kind === 'bytes'
    ? 'The model returned the following errors: messages.0.content.1.image.source.bytes: The PDF specified was not valid.'
    : undefined;
}

/**
 * "A request can't mix documents that have citations enabled with documents that don't":
 * https://platform.claude.com/docs/en/build-with-claude/citations (2026-11-29).
 */
function citationsProblem(messages: readonly JsonObject[]): string | undefined {
  const documents = messages
    .flatMap(({ content }) => objectsOf(content))
    .flatMap(({ document }) => document ?? []);
  const cited = documents.filter((document) => objectOf(objectOf(document).citations).enabled === true);
  return cited.length > 0 && cited.length < documents.length
    ? 'The model returned the following errors: Citations must be enabled on all or none of the documents.'
    : undefined;
}

function systemProblem(system: readonly JsonObject[]): string | undefined {
  for (const [at, block] of system.entries()) {
    const [kind = '', ...others] = Object.keys(block);
    if (!SYSTEM_BLOCKS.includes(kind) || others.length > 0)
      return `The SystemContentBlock object at system.${at} must set one of the following keys: ${SYSTEM_BLOCKS.join(', ')}.`;
    if (kind === 'text' && textOf(block.text).trim() === '')
      return `The text field in the SystemContentBlock object at system.${at} is blank. Add text to the text field, and try again.`;
  }
  return undefined;
}

function idsOf(content: readonly JsonObject[], kind: 'toolUse' | 'toolResult'): string[] {
  return content.flatMap((block) =>
    block[kind] === undefined ? [] : [textOf(objectOf(block[kind]).toolUseId)],
  );
}

function callsProblem(messages: readonly JsonObject[], { toolConfig }: JsonObject): string | undefined {
  const contents = messages.map(({ content }) => objectsOf(content));
  const hasCalls = contents.some(
    (content) => [...idsOf(content, 'toolUse'), ...idsOf(content, 'toolResult')].length > 0,
  );
  if (hasCalls && toolConfig === undefined)
    return 'The toolConfig field must be defined when using toolUse and toolResult content blocks.';
  for (const [at, content] of contents.entries()) {
    const calls = idsOf(content, 'toolUse');
    const results = idsOf(contents[at + 1] ?? [], 'toolResult');
    const missing = calls.filter((id) => !results.includes(id));
    if (missing.length > 0)
      return `Expected toolResult blocks at messages.${at + 1}.content for the following Ids: ${missing.join(', ')}`;
    if (results.length > calls.length)
      return `The number of toolResult blocks at messages.${at + 1}.content exceeds the number of toolUse blocks of previous turn.`;
  }
  return undefined;
}

function toolsProblem({ tools, toolChoice }: JsonObject, model: ConverseModel): string | undefined {
  const specs = objectsOf(tools);
  if (tools !== undefined && specs.length === 0)
    return 'toolConfig.tools: Member must have length greater than or equal to 1';
  if (model.cachePoints !== 'everywhere' && specs.some(({ cachePoint }) => cachePoint !== undefined))
    return 'Malformed input request: extraneous key [cachePoint] is not permitted in toolConfig';
  for (const [at, { toolSpec }] of specs.entries()) {
    if (toolSpec === undefined) continue;
    const { name, description, inputSchema } = objectOf(toolSpec);
    const schema = objectOf(objectOf(inputSchema).json);
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(textOf(name)))
      return `Value at 'toolConfig.tools.${at + 1}.member.toolSpec.name' failed to satisfy constraint`;
    if (description !== undefined && textOf(description) === '')
      return `toolConfig.tools.${at}.toolSpec.description: Member must have length greater than or equal to 1`;
    if (schema.type !== 'object')
      return `The value at toolConfig.tools.${at}.toolSpec.inputSchema.json.type must be one of the following: object.`;
    if (!model.takesDefinitions && (schema.$defs !== undefined || schema.definitions !== undefined))
      return `Malformed input request: #/toolConfig/tools/${at}/toolSpec/inputSchema/json: extraneous key [$defs] is not permitted, please reformat your input and try again.`;
  }
  if (!model.takesNamedChoice && objectOf(toolChoice).tool !== undefined)
    return "This model doesn't support the toolConfig.toolChoice.tool field. Remove toolConfig.toolChoice.tool and try again.";
  return undefined;
}

const DOCUMENT_NAME = /^(?! )(?!.* {2})[A-Za-z0-9\s\-()[\]]{1,200}$/;

function namesProblem(messages: readonly JsonObject[]): string | undefined {
  const documents = messages
    .flatMap(({ content }) => objectsOf(content))
    .flatMap(({ document }) => (document === undefined ? [] : [textOf(objectOf(document).name)]));
  const invalid = documents.find((name) => !DOCUMENT_NAME.test(name));
  if (invalid !== undefined)
    return `The document file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square brackets. The name can't contain more than one consecutive whitespace character.`;
  return new Set(documents).size < documents.length
    ? 'Your request contains duplicate document names.'
    : undefined;
}

/** The ids of the history's calls that the family refuses. */
export function refusedIds(body: JsonObject, { callIds }: ConverseModel): string[] {
  const contents = objectsOf(body.messages).flatMap(({ content }) => objectsOf(content));
  return idsOf(contents, 'toolUse').filter((id) => !callIds.test(id));
}
