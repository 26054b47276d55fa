/** The feature `dashboard`, with the page inside the Worker's bundle: a Worker has one folder of static assets, which a host needs itself. */
import type { FeatureModule } from '../feature.ts';
import type { Feature } from '../types.ts';
import { DOCUMENT } from './built/document.ts';
import { dashboardRoutes } from './dashboard.ts';

/** Serves the dashboard's page at `<basePath>/dashboard`. */
export function dashboard(): Feature<'dashboard'> {
  const feature: FeatureModule<'dashboard'> = {
    name: 'dashboard',
    configure: () => ({ routes: dashboardRoutes(() => DOCUMENT) }),
  };
  return feature;
}
