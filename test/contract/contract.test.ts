/** The contract, over every provider, every fixture and every cut of its bytes. */
import { describe, expect, test } from 'vitest';
import { PROVIDERS } from '../../src/providers/index.ts';
import { ROUTE_SHAPES } from '../../src/providers/provider.ts';
import { check } from './check.ts';
import { COMPATIBLE, type Conversion, type Converted, convertObject, convertStream, cut } from './convert.ts';
import { type Fixture, fixtureProviders, fixtures, policiesOf, type UsageField } from './fixtures.ts';

const CUTS = [Number.POSITIVE_INFINITY, 1, 2, 3, 7, 64];

test('every provider of the registry has fixtures, and every fixture folder a provider', () => {
  const ids = PROVIDERS.map((provider) => provider.id);
  expect(fixtureProviders).toEqual([...ids, COMPATIBLE].sort());
});

describe.each(fixtures.map((fixture) => [fixture.name, fixture] as const))('%s', (_, fixture) => {
  const { rules } = fixture;

  test.each(CUTS)(`${rules.join(' ')}: the client gets the expected bytes (reads of %d bytes)`, (size) => {
    expect(run(fixture, size).text).toBe(fixture.expected);
  });

  test(`${rules.join(' ')}: the record contains its end and its usage`, () => {
    const { error, tally } = run(fixture, Number.POSITIVE_INFINITY);
    const { outcome } = fixture;
    expect({
      status: error === null ? 'finished' : 'failed',
      native_finish_reason: tally.finishWord,
      error: error === null ? null : { type: error.type, code: error.code },
      vendor_events: tally.vendorEvents,
      vendor_tokens: tally.vendorTokens,
    }).toEqual({
      status: outcome.status,
      native_finish_reason: outcome.native_finish_reason,
      error: outcome.error,
      vendor_events: outcome.vendor_events,
      vendor_tokens: outcome.vendor_tokens,
    });
    const { usage, estimated } = tally.countUsage();
    expect(estimated).toBe(outcome.usage === null);
    if (outcome.usage !== null) expect(countsOf(usage)).toEqual(outcome.usage);
  });

  test.runIf(fixture.stream)('the contract checker finds no broken rule', () => {
    const policies = policiesOf(fixture);
    const broken = check(new TextEncoder().encode(run(fixture, 64).text), {
      shape: ROUTE_SHAPES[fixture.route],
      provider: fixture.provider,
      usageChunk: fixture.include_usage || policies.usageChunk === 'always',
      vendorEvents: policies.vendorEvents.length > 0 ? 'pass' : 'strip',
      errorFrames: policies.errorFrames,
    });
    expect(broken).toEqual([]);
  });
});

function run(fixture: Fixture, size: number): Converted {
  const { provider, route, model, include_usage, upstream } = fixture;
  const conversion: Conversion = {
    provider,
    route,
    model,
    usageChunk: include_usage,
    policies: policiesOf(fixture),
  };
  if (!fixture.upstreamIsStream) return convertObject(upstream, conversion, fixture.stream);
  return convertStream(Number.isFinite(size) ? cut(upstream, size) : [upstream], conversion);
}

function countsOf(
  usage: ReturnType<Converted['tally']['countUsage']>['usage'],
): Record<UsageField, number | null> {
  const { prompt_tokens, completion_tokens, total_tokens } = usage;
  const { cached_tokens } = usage.prompt_tokens_details;
  const { reasoning_tokens } = usage.completion_tokens_details;
  return { prompt_tokens, completion_tokens, total_tokens, cached_tokens, reasoning_tokens };
}
