/** The policies of a deployment without settings, for tests. */
import type { Policies } from '../../src/canonical/policies.ts';

export const DEFAULT_POLICIES: Policies = {
  vendorEvents: [],
  reasoning: 'pass',
  usageChunk: 'finish',
  errorFrames: 'data',
};
