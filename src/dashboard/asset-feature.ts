/** The feature `dashboard` of the deployed Worker, whose page is a static asset. */
import type { FeatureModule } from '../feature.ts';
import type { Feature } from '../types.ts';
import { dashboardRoutes, docsRoutes } from './dashboard.ts';

/** The pages among the assets; of their addresses only the path counts. */
const PAGE = 'https://assets/dashboard.html';
const DOCS = 'https://assets/docs.html';

/** Serves the page that the binding `ASSETS` has. */
export function dashboardAsset(): Feature<'dashboard'> {
  const feature: FeatureModule<'dashboard'> = {
    name: 'dashboard',
    configure: (reader) => {
      const assets = decodeAssets(reader.binding('ASSETS'));
      return {
        routes: [
          ...dashboardRoutes(() => readAsset(assets, PAGE)),
          ...docsRoutes(() => readAsset(assets, DOCS)),
        ],
      };
    },
  };
  return feature;
}

/** Only its text: the asset's own headers, such as its ETag, are not those of the page. */
async function readAsset(assets: Fetcher | undefined, address: string): Promise<string> {
  const response = await assets?.fetch(address);
  if (response?.ok === true) return response.text();
  const cause = response === undefined ? 'it is not bound' : `status ${response.status}`;
  throw new Error(`ASSETS has no ${new URL(address).pathname} ([assets] in wrangler.toml): ${cause}`);
}

/** Trusts the deployment's configuration that the binding has its documented type. */
function decodeAssets(binding: object | undefined): Fetcher | undefined {
  return binding as Fetcher | undefined; // decode
}
