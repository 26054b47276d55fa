/** Tests that the deployment accepts each block of settings in docs/routing.md and docs/coming-from-other-gateways.md. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { describe, expect, test } from 'vitest';
import { objectOf } from '../../tools/simulator/json.ts';
import { readSettings } from './read-settings.ts';

const DOCS = join(import.meta.dirname, '..', '..', 'docs');
const SECRETS = [
  'OPENAI_API_KEY',
  'ANTHROPIC_API_KEY',
  'DEEPSEEK_API_KEY',
  'MISTRAL_API_KEY',
  'GEMINI_API_KEY',
  'OPENROUTER_API_KEY',
];

describe.each(['routing.md', 'coming-from-other-gateways.md'])('docs/%s', (page) => {
  const blocks = readFileSync(join(DOCS, page), 'utf8')
    .split(/^###? /m)
    .slice(1)
    .filter((recipe) => recipe.includes('```toml'))
    .map(
      (recipe) => [recipe.split('\n')[0] ?? '', /```toml\n([\s\S]*?)```/.exec(recipe)?.[1] ?? ''] as const,
    );

  test.each(blocks)('%s: a valid setting', (_, block) => {
    const vars = objectOf(parse(block));
    expect(Object.keys(vars).length).toBeGreaterThan(0);
    const named = [...block.matchAll(/"api_key": "(\w+)"/g)].map(([, name = '']) => name);
    const secrets = Object.fromEntries([...SECRETS, ...named].map((name) => [name, 'k']));
    const read = readSettings({ ...secrets, ADMIN_TOKEN: 'admin', ...vars });
    expect(read.kind === 'invalid' ? read.problems : []).toEqual([]);
  });
});
