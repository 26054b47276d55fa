/** The form of a provider without a table, for rows that are applied alone. */
import type { RequestForm } from '../../src/request-translation/translate.ts';

export const PLAIN_FORM: RequestForm = {
  kind: 'chat',
  rules: { fields: {}, messages: { reasoning: [] }, streamUsage: 'on_request' },
};
