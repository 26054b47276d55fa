/** Reads the body of Anthropic's Messages into the canonical request (I2, 5.3). */
import { type ApiError, apiError } from '../../canonical/error.ts';
import { ReportedFields } from '../../canonical/reported-fields.ts';
import { toolCallId } from '../../canonical/tool-call-id.ts';
import { isObject, type JsonObject, objectOf, readArray, readText } from '../../shared/json.ts';
import { failure, ok, type Result } from '../../shared/result.ts';
import type { ClientRequest } from '../shared/client-protocol.ts';
import { isConversation, readMessages } from './client-request-messages.ts';
import { checkRequest } from './client-request-schema.ts';
import { readTools } from './client-request-tools.ts';

/** Fields that mean the same in a chat. */
const SAME = ['model', 'models', 'max_tokens', 'temperature', 'top_p', 'top_k', 'stream'];
/** Fields that are read here; whatever else there is has no place in a chat, and is left out. */
const READ = [
  ...SAME,
  'messages',
  'system',
  'tools',
  'tool_choice',
  'stop_sequences',
  'thinking',
  'output_config',
  'output_format',
  'metadata',
];

export function readRequest(body: JsonObject): Result<ClientRequest<null>, ApiError> {
  const error = faultOf(body);
  if (error !== null) return failure(error);
  const dropped = new ReportedFields();
  const tools = readTools(body, dropped);
  for (const [field, value] of Object.entries(body)) {
    if (!READ.includes(field) && value !== null && value !== undefined) dropped.add(field);
  }
  const canonical = {
    ...Object.fromEntries(SAME.filter((field) => isSaid(body[field])).map((field) => [field, body[field]])),
    ...(body.stream === true ? { stream_options: { include_usage: true } } : {}),
    messages: readMessages(body.system, readArray(body.messages).filter(isObject), dropped),
    ...tools.fields,
    ...stop(body.stop_sequences),
    ...effort(body),
    ...format(body),
    ...user(body.metadata),
  };
  const translationError = isSaid(body.thread) ? NO_THREADS : (tools.refusal ?? checkRequest(body));
  return ok({
    body: canonical,
    dropped: dropped.list,
    translationError,
    isPinned: isSaid(body.thread),
    session: null,
  });
}

/** The code is the word by which the SDK's tool runner knows to send the whole conversation: without it it would loop. */
const NO_THREADS: ApiError = {
  ...apiError(
    'invalid_request',
    'This gateway keeps no threads: send all messages, without thread',
    'thread',
  ),
  code: 'thread_unsupported_request',
};

/** What of the body no provider could take. */
function faultOf({ messages, stream, thread }: JsonObject): ApiError | null {
  // A thread whose turn was paused goes on without a message.
  const isEmpty = readArray(messages).length === 0 && !isSaid(thread);
  if (!isConversation(messages) || isEmpty) {
    return apiError('invalid_request', 'messages must be a list with at least one message', 'messages');
  }
  const isInvalid = isSaid(stream) && typeof stream !== 'boolean';
  return isInvalid ? apiError('invalid_request', 'stream must be true or false', 'stream') : null;
}

function isSaid(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function stop(sequences: unknown): JsonObject {
  const texts = readArray(sequences).filter((text) => readText(text) !== undefined);
  return texts.length === 0 ? {} : { stop: texts };
}

/** A budget of thinking goes on as it is: each provider has its own word for it. Thinking that is `adaptive` is the model's choice. */
function effort({ thinking, output_config }: JsonObject): JsonObject {
  const word = isObject(output_config) ? readText(output_config.effort) : undefined;
  const { type, budget_tokens } = objectOf(thinking);
  if (type === 'disabled') return { reasoning_effort: 'none' };
  if (word !== undefined) return { reasoning_effort: word };
  return type === 'enabled' ? { thinking: { type, budget_tokens } } : {};
}

function format({ output_config, output_format }: JsonObject): JsonObject {
  const asked = (isObject(output_config) ? output_config.format : undefined) ?? output_format;
  if (!isObject(asked) || asked.type !== 'json_schema') return {};
  const json_schema = { name: 'output', schema: asked.schema, strict: true };
  return { response_format: { type: 'json_schema', json_schema } };
}

/** Claude Code's is a text of device and account ids: what goes on tells users apart, and no more. */
function user(metadata: unknown): JsonObject {
  const id = isObject(metadata) ? readText(metadata.user_id) : undefined;
  return id === undefined ? {} : { user: `user_${toolCallId(id)}` };
}
