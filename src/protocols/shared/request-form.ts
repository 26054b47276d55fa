/** Writes a request in the form of a provider: a body of Chat Completions, or that of a native API, whose writer reads a typed conversation. */

import type { CanonicalRequest, Turn } from '../../canonical/conversation.ts';
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
import { type JsonObject, omit } from '../../shared/json.ts';
import { MAX_TOOL_NAMES_CHARS } from '../../shared/limits.ts';
import { failure, ok, type Result } from '../../shared/result.ts';
import { readTurns } from '../openai-chat/conversation.ts';
import { chatBody } from '../openai-chat/conversation-writer.ts';

/** A translation with the tool names that were replaced; absent: none was. */
export type WrittenRequest = Result<Translation & { readonly toolNames?: ToolNames }, ApiError>;

/** Writes the body that the provider accepts. The given request is not modified. */
export function writeRequest(
  form: RequestForm,
  given: CanonicalRequest,
  options: WriteOptions,
): WrittenRequest {
  const acceptedNames = form.kind === 'native' ? form.toolNames : form.rules.messages.toolNames;
  const { request, names } = withShortToolNames(given, acceptedNames);
  if (sizeOfNames(names) > MAX_TOOL_NAMES_CHARS) return failure(tooManyNames(options.provider));
  const written =
    form.kind === 'native'
      ? form.write(request, options)
      : translateRequest(chatBody(request), form.rules, options);
  return written.kind === 'error' || names.size === 0 ? written : ok({ ...written.value, toolNames: names });
}

function tooManyNames(provider: string): ApiError {
  const message = `The tool names that ${provider} does not accept have more than ${MAX_TOOL_NAMES_CHARS} characters in total: send fewer or shorter names`;
  return apiError('invalid_request', message, 'tools');
}

/** A request as the writer of a native provider reads it. */
export interface NativeRequest {
  /** The fields beside the messages, under the names that Chat Completions has for them. */
  readonly fields: JsonObject;
  readonly turns: readonly Turn[];
}

type NativeForm = Extract<RequestForm, { readonly kind: 'native' }>;

/** @param write gets fields that are not null, and tools in the place of OpenAI's functions from before tools */
export function nativeForm(
  form: Omit<NativeForm, 'kind' | 'write'>,
  write: (request: NativeRequest, options: WriteOptions) => TranslatedRequest,
): RequestForm {
  return {
    ...form,
    kind: 'native',
    write: ({ fields, turns }, options) => {
      const chat = convertLegacyFunctions(withoutNulls(fields));
      const request = { fields: omit(chat, 'messages'), turns: turns ?? readTurns(chat.messages) };
      return write(request, options);
    },
  };
}
