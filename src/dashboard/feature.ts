/**
 * The feature `dashboard`, with the page inside the Worker's bundle: a Worker has one folder of static assets, which a
 * host needs itself.
 */
import type { FeatureModule } from '../feature.ts';
import type { Feature } from '../types.ts';
import { DOCUMENT } from './built/document.ts';
import { dashboardRoutes } from './dashboard.ts';

/** The documents are too large for a bundle, so the page has no links to them. */
const WITHOUT_DOCS = DOCUMENT.replace('<html ', '<html data-without-docs ');

/** Serves the dashboard's page at `<basePath>/dashboard`. */
export function dashboard(): Feature<'dashboard'> {
  const feature: FeatureModule<'dashboard'> = {
    name: 'dashboard',
    configure: () => ({ routes: dashboardRoutes(() => WITHOUT_DOCS) }),
  };
  return feature;
}
