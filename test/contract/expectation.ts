/** Derives the conversion's options from a fixture's request, and the checker's expectation from a conversion. */

import { ROUTE_SHAPES } from '../../src/providers/provider.ts';
import type { Expectation } from '../../tools/conformance/contract/check.ts';
import { DEFAULT_POLICIES } from '../canonical/default-policies.ts';
import { type Conversion, usageAtOf } from './convert.ts';
import { type Fixture, policiesOf } from './fixtures.ts';

export function conversionOf(fixture: Fixture): Conversion {
  const { provider, route, model, include_usage, n = 1 } = fixture;
  return { provider, route, model, usageChunk: include_usage, choices: n, policies: policiesOf(fixture) };
}

export function expectationOf(conversion: Conversion): Expectation {
  const { vendorEvents, errorFrames, reasoning } = conversion.policies ?? DEFAULT_POLICIES;
  return {
    shape: ROUTE_SHAPES[conversion.route],
    provider: conversion.provider,
    usage: usageAtOf(conversion),
    vendorEvents: vendorEvents.length > 0 ? 'pass' : 'strip',
    errorFrames,
    reasoning,
  };
}
