/** Checks that the simulator has every built-in provider, and that no TODO mark of `npm run new-provider` remains. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PROVIDERS } from '../../src/providers/index.ts';
import { CREDENTIALS } from '../../test/e2e/gateway.ts';
import { basePaths, findScene } from './scenes.ts';

const ROOT = join(import.meta.dirname, '..', '..');

test('the simulator has a scene for every provider of the registry', () => {
  const missing = PROVIDERS.flatMap(({ id, apiKeySettings }) => {
    const path = Object.entries(basePaths).find(([name]) => name === id)?.[1];
    if (path === undefined) return `${id} has no path: add it to basePaths in tools/simulator/scenes.ts`;
    const isPlayed = ['/chat/completions', '/v1/messages', '/v1beta/models', '/fim/completions'].some(
      (end) => {
        return (
          findScene(`${path}${end}`) !== undefined ||
          findScene(`${path}${end}/m:generateContent`) !== undefined
        );
      },
    );
    const hasKey = apiKeySettings.some((setting) => Object.hasOwn(CREDENTIALS, setting));
    return [
      ...(isPlayed
        ? []
        : [`${id} has no scene: write tools/simulator/${id}.ts and list it in tools/simulator/scenes.ts`]),
      ...(hasKey ? [] : [`${id} has no key: add ${apiKeySettings[0]} to CREDENTIALS in test/e2e/gateway.ts`]),
    ];
  });
  expect(missing, missing.join('\n')).toEqual([]);
});

/** The places that the script writes to. */
const PLACES = ['src/providers', 'tools/simulator', 'test/fixtures', 'docs', 'package.json'];
const MARK = /TODO\([a-z][a-z0-9]*\)/;

test('no TODO mark of npm run new-provider remains', () => {
  const files = PLACES.flatMap((place) =>
    statSync(join(ROOT, place)).isFile()
      ? [place]
      : readdirSync(join(ROOT, place), { recursive: true, encoding: 'utf8' })
          .map((name) => join(place, name))
          .filter((path) => statSync(join(ROOT, path)).isFile()),
  );
  const marks = files.flatMap((path) =>
    readFileSync(join(ROOT, path), 'utf8')
      .split('\n')
      .flatMap((line, at) => (MARK.test(line) ? `${path}:${at + 1}: ${line.trim()}` : [])),
  );
  expect(marks, marks.join('\n')).toEqual([]);
});
