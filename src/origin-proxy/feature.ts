/** The feature `origin`: a site beside Weir on the same host, which gets the requests for all other paths. */
import type { FeatureModule } from '../feature.ts';
import type { Feature } from '../types.ts';
import { OriginProxy } from './origin-proxy.ts';
import { readOrigin } from './settings.ts';

/** The settings without which no request is passed on. All others may be invalid, and the site stays up. */
const NEEDED = ['BASE_PATH', 'ADMIN_TOKEN', 'ORIGIN', 'ORIGIN_HOSTS'];

/** Passes requests for other paths to the site's own server, as `origin` and `originHosts` say. */
export function origin(): Feature<'origin'> {
  const feature: FeatureModule<'origin'> = {
    name: 'origin',
    configure: (reader, { basePath, adminToken }) => {
      const to = readOrigin(reader);
      return {
        hasSite: to.kind !== 'none',
        before: (ports) => {
          if (to.kind === 'none' || reader.problems.some(({ setting }) => NEEDED.includes(setting)))
            return null;
          const proxy = new OriginProxy({ origin: to, basePath, adminToken }, ports);
          return (request, context) => proxy.pass(request, context);
        },
      };
    },
  };
  return feature;
}
