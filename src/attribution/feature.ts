/** The feature `attribution`: who sent a request and for what, in its record; users of Cloudflare Access as callers and admins. */

import { createHashUser } from '../auth/user-hash.ts';
import { mapSecret } from '../canonical/secret.ts';
import type { FeatureModule } from '../feature.ts';
import type { Feature } from '../types.ts';
import { createVerifyAccess } from './access.ts';
import { createAttribution } from './attribution.ts';
import { readAttributionSettings } from './settings.ts';

/** Records user, session, app and tags of each request, and verifies tokens of Cloudflare Access. */
export function attribution(): Feature<'attribution'> {
  const feature: FeatureModule<'attribution'> = {
    name: 'attribution',
    configure: (reader, { auth, adminToken }) => {
      const settings = readAttributionSettings(reader, auth, adminToken);
      return {
        hasAdmins: settings.access !== null && settings.access.admins.length > 0,
        readsGroups: (settings.access?.groupsClaim ?? null) !== null,
        start: ({ fetch, clock, log }) => {
          const { attribute, names } = createAttribution(settings);
          const ports = {
            fetch: (url: string, init: Parameters<typeof fetch>[1]) => fetch(url, init),
            now: clock.now,
            startTimer: clock.startTimer,
            log,
          };
          const hashUser = mapSecret(settings.hashKey ?? null, createHashUser);
          const verifyAccess = createVerifyAccess(settings, ports);
          return { attribution: { attribute, names, hashUser, verifyAccess } };
        },
      };
    },
  };
  return feature;
}
