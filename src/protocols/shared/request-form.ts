/**
 * Writes a request in the form of a provider: a body of Chat Completions, or that of a native API, whose writer reads a
 * typed conversation.
 */

import { type CanonicalRequest, citesDocuments } from '../../canonical/conversation.ts';
import { type ApiError, apiError } from '../../canonical/error.ts';
import { translateRequest } from '../../fitting/translate.ts';
import { TranslationReport } from '../../request-translation/dropped-fields.ts';
import type { RequestRules } from '../../request-translation/rules.ts';
import {
  type FittedTools,
  fitTools,
  restoringKeys,
  sizeOfKeys,
  type ToolKeys,
} from '../../request-translation/tool-schemas.ts';
import {
  convertLegacyFunctions,
  sizeOfNames,
  type ToolNames,
  withShortToolNames,
} from '../../request-translation/tools.ts';
import {
  type RequestForm,
  type WriteOptions,
  withoutEmptySettings,
  withoutNulls,
} from '../../request-translation/translate.ts';
import { type JsonObject, omit } from '../../shared/json.ts';
import { MAX_TOOL_NAMES_CHARS } from '../../shared/limits.ts';
import { failure, ok, type Result } from '../../shared/result.ts';
import { readToolChoice, readTools, readTurns } from '../openai-chat/conversation.ts';
import { chatBody } from '../openai-chat/conversation-writer.ts';
import { readRequestSettings } from '../openai-chat/request-settings.ts';

/** A body in its form, with the tool names and the keys of arguments that were replaced; absent: none was. */
export interface WrittenRequest {
  readonly body: JsonObject;
  /** It has no error. */
  readonly report: TranslationReport;
  readonly toolNames?: ToolNames;
  readonly toolKeys?: ToolKeys;
}

/**
 * Reads the request for a form, and returns what writes the body that the provider accepts: between the two, the work on a large request
 * yields to other streams (B4). The given request is not modified.
 */
export function prepareWrite(
  form: RequestForm,
  given: CanonicalRequest,
  provider: string,
): Result<(options: WriteOptions) => Result<WrittenRequest, ApiError>, ApiError> {
  const acceptedNames = form.kind === 'native' ? form.toolNames : form.rules.messages.toolNames;
  const { request, names } = withShortToolNames(given, acceptedNames);
  if (sizeOfNames(names) > MAX_TOOL_NAMES_CHARS) return failure(tooLong('tool names', 'names', provider));
  const { write, toolKeys } =
    form.kind === 'native' ? prepareNative(form, request) : prepareChat(form.rules, request);
  if (sizeOfKeys(toolKeys) > MAX_TOOL_NAMES_CHARS)
    return failure(tooLong("keys of tools' parameters", 'keys', provider));
  return ok((options) => {
    const report = new TranslationReport(options.provider, options.unsupported, options);
    const body = write(options, report);
    if (report.error !== null) return failure(report.error);
    const replaced = {
      ...(names.size === 0 ? {} : { toolNames: names }),
      ...(toolKeys.size === 0 ? {} : { toolKeys: restoringKeys(toolKeys) }),
    };
    return ok({ body, report, ...replaced });
  });
}

/** They are kept as long as the response, which restores them. */
function tooLong(what: string, fewer: string, provider: string): ApiError {
  const message = `The ${what} that ${provider} does not accept have more than ${MAX_TOOL_NAMES_CHARS} characters in total: send fewer or shorter ${fewer}`;
  return apiError('invalid_request', message, 'tools');
}

interface Prepared {
  readonly write: (options: WriteOptions, report: TranslationReport) => JsonObject;
  readonly toolKeys: ToolKeys;
}

function prepareChat(rules: RequestRules, request: CanonicalRequest): Prepared {
  const chat = chatBody(request);
  const dropsCitations = citesDocuments(request.turns ?? []);
  return {
    write: (options, report) => {
      if (dropsCitations) report.drop(CITATIONS);
      return translateRequest(chat, rules, options, report);
    },
    toolKeys: new Map(),
  };
}

const CITATIONS = 'messages.content.citations';

/** Without nulls, with tools in the place of OpenAI's functions from before tools, and with a chat client's messages as turns. */
function prepareNative(
  {
    rules,
    fromSettings,
    tools: toolRules,
    takesCitations,
    write,
  }: Extract<RequestForm, { readonly kind: 'native' }>,
  { fields, turns, thinking }: CanonicalRequest,
): Prepared {
  const chat = withoutEmptySettings(convertLegacyFunctions(withoutNulls(fields)));
  const given = omit(chat, 'messages', 'tools', 'tool_choice');
  const givenTools = readTools(chat.tools);
  const {
    tools = givenTools,
    toolKeys = new Map(),
    isOneReplaced,
    isOneChanged,
  }: Partial<FittedTools> = toolRules && givenTools ? fitTools(givenTools, toolRules) : {};
  const conversation = {
    turns: turns ?? readTurns(chat.messages),
    tools,
    toolKeys,
    toolChoice: readToolChoice(chat.tool_choice),
    thinking,
  };
  const dropsCitations = takesCitations !== true && citesDocuments(conversation.turns);
  return {
    toolKeys,
    write: (options, report) => {
      if (dropsCitations) report.drop(CITATIONS);
      if (isOneReplaced) report.dropAllowed('tools.function');
      if (isOneChanged) report.change('tools.function.parameters');
      const body = rules === undefined ? given : translateRequest(given, rules, options, report);
      const request = {
        ...conversation,
        settings: readRequestSettings(body),
        extra: omit(body, ...fromSettings),
      };
      return write(request, options, report);
    },
  };
}
