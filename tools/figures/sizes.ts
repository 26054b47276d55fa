/** The page of sizes and costs: the bundles of the features, and what deployments cost. */

import { FEATURE_SETTINGS } from '../../src/settings/feature-settings.ts';
import { hostBundle } from '../../test/e2e/workers.ts';
import { costRows } from './costs.ts';
import { kib } from './figures.ts';

/** The teams of the table of costs. */
export const DEVELOPERS = [10, 500, 5000] as const;

interface Size {
  /** `none`: the core alone, and all features. */
  readonly feature: string;
  /** KiB gzip of a host with the core and this feature alone. */
  readonly alone: number;
  /** KiB gzip of a host with all features but this one. */
  readonly without: number;
}

const NONE = 'none';
const FEATURES: readonly string[] = Object.keys(FEATURE_SETTINGS);

/** Bundles hosts with each feature, and with all others. */
export async function computeSizes(): Promise<readonly Size[]> {
  const sizeOf = async (features: readonly string[]) => kib(await hostBundle(hostOf(features)));
  const sizes: Size[] = [{ feature: NONE, alone: await sizeOf([]), without: await sizeOf(FEATURES) }];
  for (const feature of FEATURES)
    sizes.push({
      feature,
      alone: await sizeOf([feature]),
      without: await sizeOf(FEATURES.filter((other) => other !== feature)),
    });
  return sizes;
}

/** A host's module with these features, as the package's entries name them. */
function hostOf(features: readonly string[]): string {
  const entries = features.map((name) => {
    const folder =
      name === 'origin' ? 'origin-proxy' : name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    return `import { ${name} } from './${folder}/feature.ts';`;
  });
  const list = features.map((name) => `${name}()`).join(', ');
  return `${entries.join('\n')}\nimport { weir } from './weir.ts';\nexport default weir({ features: [${list}] });`;
}

/** The page with its two tables as they are computed. */
export function withTables(page: string, sizes: readonly Size[]): string {
  const sizeRows = sizes.map(
    ({ feature, alone, without }) =>
      `| ${feature === NONE ? NONE : `\`${feature}()\``} | ${alone} | ${without} |`,
  );
  const costs = costRows(DEVELOPERS).map(({ name, cells }) => `| ${name} | ${cells.join(' | ')} |`);
  return withRows(withRows(page, '| feature |', sizeRows), '| developers |', costs);
}

/** Replaces the rows of the table whose head begins so. */
function withRows(page: string, head: string, rows: readonly string[]): string {
  const lines = page.split('\n');
  const start = lines.findIndex((line) => line.startsWith(head)) + 2;
  const end = lines.findIndex((line, at) => at >= start && !line.startsWith('|'));
  return lines.toSpliced(start, end - start, ...rows).join('\n');
}

/** The sizes that the page has. */
export function writtenSizes(page: string): readonly Size[] {
  return [...page.matchAll(/^\| `?(\w+)(?:\(\)`)? \| ([\d.]+) \| ([\d.]+) \|$/gm)].map(
    ([, feature = '', alone, without]) => ({ feature, alone: Number(alone), without: Number(without) }),
  );
}
