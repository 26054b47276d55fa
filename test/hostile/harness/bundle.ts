/** Bundles the gateway as it is deployed, for workerd processes of tests. */
import { type Bundle, bundle } from '../../../bench/build.ts';

/** @param name the folder of the bundle, which is different for each test file */
export async function bundleWeir(name: string): Promise<Bundle> {
  const bundled = await bundle({
    name,
    what: 'Weir as it is',
    main: new URL('../../../src/index.ts', import.meta.url),
    treatment: 'frames',
    sections: [],
    settings: () => ({}),
    hasKv: true,
    hasLedger: false,
    limits: {},
    path: '/v1/chat/completions',
    modelPrefix: () => '',
    headers: () => ({}),
    alias: {},
    replace: null,
    isWeir: true,
    isPeer: false,
  });
  if (bundled === null) throw new Error('The gateway has no bundle');
  return bundled;
}
