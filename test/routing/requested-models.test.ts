/** Tests which model names are read from a request: `model`, then `models` (R1, R12). */
import { describe, expect, test } from 'vitest';
import type { Route } from '../../src/providers/provider.ts';
import { readRequestedModels } from '../../src/routing/targets.ts';
import type { JsonObject } from '../../src/shared/json.ts';

function namesOf(body: JsonObject, route: Route = 'chat') {
  const read = readRequestedModels(body, route);
  return read.kind === 'ok' ? read.value : { param: read.error.param, status: read.error.status };
}

const NINE = Array.from({ length: 9 }, (_, i) => `m${i}`);

describe('R1 readRequestedModels', () => {
  test.each<[body: JsonObject, names: readonly string[]]>([
    [{ model: 'a' }, ['a']],
    [{ model: 'a', models: null }, ['a']],
    [{ model: 'a', models: [] }, ['a']],
    [{ model: 'a', models: ['b', 'c'] }, ['a', 'b', 'c']],
    [{ model: 'b', models: ['a', 'b', 'a'] }, ['b', 'a']],
    [{ models: ['b', 'a'] }, ['b', 'a']],
    [{ model: null, models: ['b'] }, ['b']],
    [{ model: 'm0', models: NINE.slice(0, 8) }, NINE.slice(0, 8)],
  ])('%j has the names %j', (body, names) => {
    for (const route of ['chat', 'completions', 'fim'] as const) expect(namesOf(body, route)).toEqual(names);
  });

  test.each<[body: JsonObject, param: string]>([
    [{}, 'model'],
    [{ model: '' }, 'model'],
    [{ model: 7, models: ['a'] }, 'model'],
    [{ model: 'm'.repeat(257) }, 'model'],
    [{ model: 'a\n' }, 'model'],
    [{ model: 'a', models: ['b\u0085'] }, 'models'],
    [{ models: [] }, 'model'],
    [{ model: 'a', models: 'b' }, 'models'],
    [{ model: 'a', models: [7] }, 'models'],
    [{ model: 'a', models: [''] }, 'models'],
    [{ model: 'a', models: ['m'.repeat(257)] }, 'models'],
    [{ models: NINE }, 'models'],
    [{ model: 'a', models: NINE.slice(0, 8) }, 'models'],
  ])('%j is refused because of %s', (body, param) => {
    expect(namesOf(body)).toEqual({ param, status: 400 });
  });

  test('R12 an agent is one target: the agents route reads only agent_id', () => {
    expect(namesOf({ agent_id: 'ag', model: 'a', models: ['b'] }, 'agents')).toEqual(['ag']);
    expect(namesOf({ model: 'a' }, 'agents')).toEqual({ param: 'agent_id', status: 400 });
  });
});
