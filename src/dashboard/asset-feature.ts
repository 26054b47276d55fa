/** The feature `dashboard` of the deployed Worker, whose page is a static asset. */
import type { FeatureModule } from '../feature.ts';
import type { Feature } from '../types.ts';
import { dashboardRoutes } from './dashboard.ts';

/** The page among the assets; only the path counts. */
const ASSET = 'https://assets/dashboard.html';

/** Serves the page that the binding `ASSETS` has. */
export function dashboardAsset(): Feature<'dashboard'> {
  const feature: FeatureModule<'dashboard'> = {
    name: 'dashboard',
    configure: (reader) => {
      const assets = decodeAssets(reader.binding('ASSETS'));
      return { routes: dashboardRoutes(() => readAsset(assets)) };
    },
  };
  return feature;
}

/** Only its text: the asset's own headers, such as its ETag, are not those of the page. */
async function readAsset(assets: Fetcher | undefined): Promise<string> {
  const response = await assets?.fetch(ASSET);
  if (response?.ok === true) return response.text();
  const cause = response === undefined ? 'it is not bound' : `status ${response.status}`;
  throw new Error(`ASSETS has no dashboard.html ([assets] in wrangler.toml): ${cause}`);
}

/** Trusts the deployment's configuration that the binding has its documented type. */
function decodeAssets(binding: object | undefined): Fetcher | undefined {
  return binding as Fetcher | undefined; // decode
}
