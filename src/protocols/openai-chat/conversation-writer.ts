/** Writes the conversation of a client of another protocol as the messages of a chat request. */
import type {
  Block,
  CanonicalRequest,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
} from '../../canonical/conversation.ts';
import { MEDIA_PARTS, type Media } from '../../canonical/media.ts';
import type { JsonObject } from '../../shared/json.ts';

/** The body of Chat Completions. That of a chat client is returned as it came. */
export function chatBody({ fields, turns }: CanonicalRequest): JsonObject {
  return turns === null ? fields : { ...fields, messages: turns.flatMap(writeTurn) };
}

function writeTurn({ role, blocks }: Turn): readonly JsonObject[] {
  if (role === 'assistant') return [writeAssistant(blocks)];
  const results = blocks.filter((block) => block.kind === 'tool_result').map(writeResult);
  const content = writeParts(blocks);
  // Results come first: providers accept nothing between a call and its result.
  return results.length > 0 && content.length === 0
    ? results
    : [...results, { role, content: contentOf(content) }];
}

function writeResult({ id, content }: ToolResultBlock): JsonObject {
  const written = typeof content === 'string' ? content : writeParts(content);
  return { role: 'tool', tool_call_id: id, content: written };
}

function writeAssistant(blocks: readonly Block[]): JsonObject {
  const reasoning = blocks.filter((block) => block.kind === 'reasoning');
  const text = reasoning.find(({ detail }) => detail === undefined)?.text;
  const details = reasoning.flatMap(({ detail }) => detail ?? []);
  const tool_calls = blocks.filter((block) => block.kind === 'tool_call').map(writeCall);
  const content = writeParts(blocks);
  return {
    role: 'assistant',
    content: content.length === 0 && tool_calls.length > 0 ? null : contentOf(content),
    ...(text === undefined ? {} : { reasoning_content: text }),
    ...(details.length === 0 ? {} : { reasoning_details: details }),
    ...(tool_calls.length === 0 ? {} : { tool_calls }),
  };
}

function writeCall({ id, name, input, extra }: ToolCallBlock): JsonObject {
  return { id, type: 'function', function: { name, arguments: input }, ...extra };
}

/** A single text becomes a string, because some providers accept only strings. A mark needs a part. */
function contentOf(parts: readonly JsonObject[]): unknown {
  const [{ type, text, ...others } = { type: 'text', text: '' }] = parts;
  const isPlain = parts.length < 2 && type === 'text' && Object.keys(others).length === 0;
  return isPlain ? text : parts;
}

function writeParts(blocks: readonly Block[]): readonly JsonObject[] {
  return blocks.flatMap((block): JsonObject[] => {
    if (block.kind === 'unknown') return [block.raw];
    if (block.kind === 'text') return [{ type: 'text', text: block.text, ...block.extra }];
    return block.kind === 'media' ? [{ ...mediaPart(block.media), ...block.extra }] : [];
  });
}

function mediaPart(media: Media): JsonObject {
  const type = MEDIA_PARTS[media.type];
  if (media.type === 'audio') return { type, [type]: { data: media.data, format: media.format } };
  const { url, fileId: file_id, name: filename, detail } = media;
  return { type, [type]: media.type === 'file' ? { filename, file_data: url, file_id } : { url, detail } };
}
