/** Checks the contract over every provider, every fixture and every split of its bytes. */
import { describe, expect, test } from 'vitest';
import { PROVIDERS } from '../../src/providers/index.ts';
import { check } from '../../tools/conformance/contract/check.ts';
import { COMPATIBLE, type Converted, convertObject, convertStream, cut } from './convert.ts';
import { conversionOf, expectationOf } from './expectation.ts';
import { type Fixture, fixtureProviders, fixtures, type UsageField } from './fixtures.ts';

const CUTS = [Number.POSITIVE_INFINITY, 1, 2, 3, 7, 64];

test('every provider of the registry has fixtures, and every fixture folder a provider', () => {
  const ids = [...PROVIDERS.map((provider) => provider.id), COMPATIBLE];
  const missing = ids.filter((id) => !fixtureProviders.includes(id));
  const unknown = fixtureProviders.filter((id) => !ids.includes(id));
  const problems = [
    ...missing.map(
      (id) =>
        `${id} has no fixture: add test/fixtures/${id}/<case>/ with upstream.sse, expected.sse and case.json`,
    ),
    ...unknown.map(
      (id) => `test/fixtures/${id}/ has no provider: add it to src/providers/index.ts, or rename the folder`,
    ),
  ];
  expect(problems, problems.join('\n')).toEqual([]);
});

describe.each(fixtures.map((fixture) => [fixture.name, fixture] as const))('%s', (_, fixture) => {
  const { rules } = fixture;

  test.each(CUTS)(`${rules.join(' ')}: the client gets the expected bytes (reads of %d bytes)`, (size) => {
    expect(run(fixture, size).text).toBe(fixture.expected);
  });

  test(`${rules.join(' ')}: the record contains its end and its usage`, () => {
    const { error, accumulator } = run(fixture, Number.POSITIVE_INFINITY);
    const { outcome } = fixture;
    expect({
      status: error === null ? 'finished' : 'failed',
      native_finish_reason: accumulator.finishWord,
      error: error === null ? null : { type: error.type, code: error.code },
      vendor_events: accumulator.vendorEvents,
      vendor_tokens: accumulator.vendorTokens,
    }).toEqual({
      status: outcome.status,
      native_finish_reason: outcome.native_finish_reason,
      error: outcome.error,
      vendor_events: outcome.vendor_events,
      vendor_tokens: outcome.vendor_tokens,
    });
    const { usage, estimated } = accumulator.countUsage();
    expect(estimated).toBe(outcome.usage === null);
    if (outcome.usage !== null) expect(countsOf(usage)).toEqual(outcome.usage);
  });

  test.runIf(fixture.stream)('the contract checker finds no broken rule', () => {
    const upstreamIds = idsIn(new TextDecoder().decode(fixture.upstream));
    const expectation = { ...expectationOf(conversionOf(fixture)), upstreamIds };
    expect(check(new TextEncoder().encode(run(fixture, 64).text), expectation)).toEqual([]);
  });
});

/** Every id that an upstream's bytes contain, of tool calls and of all else. */
function idsIn(upstream: string): string[] {
  return [...upstream.matchAll(/"id": ?"([^"]+)"/g)].map(([, id = '']) => id);
}

function run(fixture: Fixture, size: number): Converted {
  const { upstream } = fixture;
  const conversion = conversionOf(fixture);
  if (!fixture.upstreamIsStream) return convertObject(upstream, conversion, fixture.stream);
  return convertStream(Number.isFinite(size) ? cut(upstream, size) : [upstream], conversion);
}

function countsOf(
  usage: ReturnType<Converted['accumulator']['countUsage']>['usage'],
): Record<UsageField, number | null> {
  const { prompt_tokens, completion_tokens, total_tokens } = usage;
  const cached_tokens = usage.prompt_tokens_details?.cached_tokens ?? null;
  const reasoning_tokens = usage.completion_tokens_details?.reasoning_tokens ?? null;
  return { prompt_tokens, completion_tokens, total_tokens, cached_tokens, reasoning_tokens };
}
