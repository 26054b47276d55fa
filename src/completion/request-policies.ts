/** What one request's own headers change of the deployment's policies (V2, Q8). */
import { type ApiError, apiError } from '../canonical/error.ts';
import { type Policies, parseVendorEvents } from '../canonical/policies.ts';
import { UNSUPPORTED, type Unsupported } from '../request-translation/rules.ts';
import type { Settings } from '../settings/settings.ts';

export interface RequestPolicies {
  readonly policies: Policies;
  readonly unsupported: Unsupported;
}

export type RequestPoliciesResult =
  | ({ readonly kind: 'policies' } & RequestPolicies)
  | { readonly kind: 'error'; readonly error: ApiError };

export function readRequestPolicies(headers: Headers, settings: Settings): RequestPoliciesResult {
  const vendorHeader = headers.get('x-weir-vendor-events');
  const unsupportedHeader = headers.get('x-weir-unsupported');
  const vendorEvents =
    vendorHeader === null ? settings.policies.vendorEvents : parseVendorEvents(vendorHeader);
  if (vendorEvents === null) {
    return invalid('x-weir-vendor-events must be strip, pass, or globs such as x_research.*');
  }
  const unsupported =
    unsupportedHeader === null
      ? settings.unsupported
      : UNSUPPORTED.find((mode) => mode === unsupportedHeader.trim());
  if (unsupported === undefined)
    return invalid(`x-weir-unsupported must be one of: ${UNSUPPORTED.join(', ')}`);
  const policies = vendorHeader === null ? settings.policies : { ...settings.policies, vendorEvents };
  return { kind: 'policies', policies, unsupported };
}

function invalid(message: string): RequestPoliciesResult {
  return { kind: 'error', error: apiError('invalid_request', message) };
}
