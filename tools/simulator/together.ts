/**
 * Simulates Together with plain chunks. It rejects the requests that its provider's table declares as rejected, by the schema of
 * its openapi.yaml of 2026-04-28.
 *
 * Tokens (completion): meta-llama/Llama-3.3-70B-Instruct-Turbo 8.
 */
import { CHAT } from '../../src/providers/together.ts';
import { wordsOf } from './script.ts';
import { tableScene } from './table.ts';

export const together = tableScene({
  id: 'together',
  rules: CHAT,
  answers: {
    'meta-llama/Llama-3.3-70B-Instruct-Turbo': wordsOf('text', 'Two gates and one keeper hold the level.'),
  },
  limit: 'max_tokens',
});
