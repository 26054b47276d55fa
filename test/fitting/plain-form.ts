/** The form of a provider without a table, for rows that are applied alone. */
import type { RequestRules } from '../../src/request-translation/rules.ts';
import type { RequestForm } from '../../src/request-translation/translate.ts';

export const PLAIN_RULES: RequestRules = {
  fields: {},
  messages: { reasoning: [] },
  streamUsage: 'on_request',
};

export const PLAIN_FORM: RequestForm = { kind: 'chat', rules: PLAIN_RULES };
