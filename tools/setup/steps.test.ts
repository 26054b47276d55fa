/** What the set-up shows before it does anything: `npm run setup -- --dry-run` prints these lines. No login and no network (W12). */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../simulator/json.ts';
import { readAnswers } from './answers.ts';
import { planSteps } from './steps.ts';

const folder = mkdtempSync(join(tmpdir(), 'weir-steps-'));
afterAll(() => rmSync(folder, { recursive: true }));
const CONFIG = readFileSync(join(import.meta.dirname, '..', '..', 'wrangler.toml'), 'utf8');
writeFileSync(join(folder, 'wrangler.toml'), CONFIG);

function shownFor(answers: JsonObject, env: NodeJS.ProcessEnv = {}): string {
  const read = readAnswers(JSON.stringify(answers), { config: CONFIG, env, now: 0 });
  if (read.kind === 'error') throw new Error(read.error.join('\n'));
  const print = (line: string) => {
    throw new Error(line);
  };
  const steps = planSteps(read.value, { root: folder, env, print });
  return steps.flatMap(({ title, shown }) => [title, ...shown]).join('\n');
}

describe('W12 the set-up with Cloudflare’s models', () => {
  const shown = shownFor({ providers: ['cloudflare'], environments: ['production', 'staging'] });

  test('the binding of each deployed environment is among the lines, and no key is needed', () => {
    expect(shown).toContain('+ [ai]\n+ binding = "AI"');
    expect(shown).toContain('+ [env.staging.ai]');
    expect(shown).not.toMatch(/CLOUDFLARE_(?:AI_TOKEN|ACCOUNT_ID)/);
  });

  test('its last step asks a model', () => {
    const last = shown.split('\n').at(-1);
    expect(last).toContain('/v1/chat/completions {"model":"cloudflare/@cf/');
    expect(last).toContain('"stream":true');
  });

  test('with a token, or another provider: no binding, and no question', () => {
    const vars = { CLOUDFLARE_ACCOUNT_ID: '0123456789abcdef0123456789abcdef' };
    const byRest = shownFor({ providers: ['cloudflare'], vars }, { CLOUDFLARE_AI_TOKEN: 'k' });
    for (const text of [byRest, shownFor({ providers: ['openai'] })]) {
      expect(text).not.toContain('binding = "AI"');
      expect(text).not.toContain('/v1/chat/completions');
    }
    expect(byRest).toContain('CLOUDFLARE_AI_TOKEN: from the environment');
  });
});
