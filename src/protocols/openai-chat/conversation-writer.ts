/** Writes the conversation of a client of another protocol as the messages of a chat request. */
import type { Block, CanonicalRequest, ToolCallBlock, Turn } from '../../canonical/conversation.ts';
import { MEDIA_PARTS, type Media } from '../../canonical/media.ts';
import type { JsonObject } from '../../shared/json.ts';

/** The body of Chat Completions. That of a chat client is returned as it came. */
export function chatBody({ fields, turns }: CanonicalRequest): JsonObject {
  return turns === null ? fields : { ...fields, messages: turns.flatMap(writeTurn) };
}

function writeTurn({ role, blocks }: Turn): readonly JsonObject[] {
  if (role === 'assistant') return [writeAssistant(blocks)];
  const results = blocks.filter((block) => block.kind === 'tool_result');
  const content = results.length === 0 ? blocks : blocks.filter(({ kind }) => kind !== 'tool_result');
  // Results come first: providers accept nothing between a call and its result.
  const messages: JsonObject[] = results.map(({ id, content: result }) => ({
    role: 'tool',
    tool_call_id: id,
    content: typeof result === 'string' ? result : writeParts(result),
  }));
  if (messages.length === 0 || content.length > 0) messages.push({ role, content: writeContent(content) });
  return messages;
}

function writeAssistant(blocks: readonly Block[]): JsonObject {
  const content: Block[] = [];
  const details: JsonObject[] = [];
  const tool_calls: JsonObject[] = [];
  let text: string | undefined;
  for (const block of blocks) {
    if (block.kind === 'tool_call') tool_calls.push(writeCall(block));
    else if (block.kind !== 'reasoning') content.push(block);
    else if (block.detail !== undefined) details.push(block.detail);
    else text ??= block.text;
  }
  return {
    role: 'assistant',
    content: content.length === 0 && tool_calls.length > 0 ? null : writeContent(content),
    ...(text === undefined ? {} : { reasoning_content: text }),
    ...(details.length === 0 ? {} : { reasoning_details: details }),
    ...(tool_calls.length === 0 ? {} : { tool_calls }),
  };
}

function writeCall({ id, name, input, extra }: ToolCallBlock): JsonObject {
  return { id, type: 'function', function: { name, arguments: input }, ...extra };
}

/** A single text becomes a string, because some providers accept only strings. A mark needs a part. */
function writeContent(blocks: readonly Block[]): unknown {
  const [first] = blocks;
  if (first === undefined) return '';
  const isPlain = blocks.length === 1 && first.kind === 'text' && first.extra === undefined;
  return isPlain ? first.text : writeParts(blocks);
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
