/** Writes a request in the form of a provider: a body of Chat Completions, or that of a native API, whose writer reads a typed conversation. */

import type { CanonicalRequest, NativeRequest } from '../../canonical/conversation.ts';
import { type ApiError, apiError } from '../../canonical/error.ts';
import {
  convertLegacyFunctions,
  sizeOfNames,
  type ToolNames,
  withShortToolNames,
} from '../../request-translation/tools.ts';
import {
  type RequestForm,
  type TranslatedRequest,
  type Translation,
  translateRequest,
  type WriteOptions,
  withoutNulls,
} from '../../request-translation/translate.ts';
import { omit } from '../../shared/json.ts';
import { MAX_TOOL_NAMES_CHARS } from '../../shared/limits.ts';
import { failure, ok, type Result } from '../../shared/result.ts';
import { readToolChoice, readTools, readTurns } from '../openai-chat/conversation.ts';
import { chatBody } from '../openai-chat/conversation-writer.ts';

/** A translation with the tool names that were replaced; absent: none was. */
export type WrittenRequest = Result<Translation & { readonly toolNames?: ToolNames }, ApiError>;

/**
 * Reads the request for a form, and returns what writes the body that the provider accepts: between the two, the work on a large request
 * yields to other streams (B4). The given request is not modified.
 */
export function prepareWrite(
  form: RequestForm,
  given: CanonicalRequest,
  provider: string,
): Result<(options: WriteOptions) => WrittenRequest, ApiError> {
  const acceptedNames = form.kind === 'native' ? form.toolNames : form.rules.messages.toolNames;
  const { request, names } = withShortToolNames(given, acceptedNames);
  if (sizeOfNames(names) > MAX_TOOL_NAMES_CHARS) return failure(tooManyNames(provider));
  const withNames = (written: TranslatedRequest): WrittenRequest =>
    written.kind === 'error' || names.size === 0 ? written : ok({ ...written.value, toolNames: names });
  if (form.kind === 'native') {
    const native = readNative(request);
    return ok((options) => withNames(form.write(native, options)));
  }
  const chat = chatBody(request);
  return ok((options) => withNames(translateRequest(chat, form.rules, options)));
}

function tooManyNames(provider: string): ApiError {
  const message = `The tool names that ${provider} does not accept have more than ${MAX_TOOL_NAMES_CHARS} characters in total: send fewer or shorter names`;
  return apiError('invalid_request', message, 'tools');
}

/** Without nulls, with tools in the place of OpenAI's functions from before tools, and with a chat client's messages as turns. */
function readNative({ fields, turns }: CanonicalRequest): NativeRequest {
  const chat = convertLegacyFunctions(withoutNulls(fields));
  return {
    fields: omit(chat, 'messages', 'tools', 'tool_choice'),
    turns: turns ?? readTurns(chat.messages),
    tools: readTools(chat.tools),
    toolChoice: readToolChoice(chat.tool_choice),
  };
}
