/** The form of a native provider, whose writer reads a typed conversation. */
import type { Turn } from '../../canonical/conversation.ts';
import { convertLegacyFunctions } from '../../request-translation/tools.ts';
import {
  type RequestForm,
  type TranslatedRequest,
  type WriteOptions,
  withoutNulls,
} from '../../request-translation/translate.ts';
import { type JsonObject, omit } from '../../shared/json.ts';
import { readTurns } from '../openai-chat/conversation.ts';

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
    write: (body, options) => {
      const chat = convertLegacyFunctions(withoutNulls(body));
      return write({ fields: omit(chat, 'messages'), turns: readTurns(chat.messages) }, options);
    },
  };
}
