/** The feature `dashboard`: the page at `/dashboard`. */
import type { FeatureModule } from '../feature.ts';
import type { Feature } from '../types.ts';
import { handleDashboard } from './dashboard.ts';

/** Serves the dashboard's page. */
export function dashboard(): Feature<'dashboard'> {
  const feature: FeatureModule<'dashboard'> = {
    name: 'dashboard',
    configure: () => ({
      routes: [{ path: '/dashboard', prefixes: [''], methods: { GET: handleDashboard } }],
    }),
  };
  return feature;
}
