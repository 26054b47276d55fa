/**
 * Simulates Fireworks with plain chunks. It rejects the requests that its provider's table declares as rejected, by the schema of
 * its Python SDK of 2026-07-21.
 *
 * Tokens (completion): accounts/fireworks/models/gpt-oss-120b 7.
 */
import { CHAT } from '../../src/providers/fireworks.ts';
import { wordsOf } from './script.ts';
import { tableScene } from './table.ts';

export const fireworks = tableScene({
  id: 'fireworks',
  rules: CHAT,
  answers: {
    'accounts/fireworks/models/gpt-oss-120b': wordsOf('text', 'The spillway takes what the turbines leave.'),
  },
  limit: 'max_tokens',
});
