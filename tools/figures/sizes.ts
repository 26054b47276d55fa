/** The page of sizes and costs: the bundles of the features, and what deployments cost. */

import { FEATURES as ALL } from '../../src/settings/feature-settings.ts';
import { deployedBundle, deployedBytes, hostBundle } from '../../test/e2e/workers.ts';
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
const FEATURES: readonly string[] = ALL.map(({ name }) => name);

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

/** A folder of `src` in the deployed Worker. */
interface Part {
  readonly folder: string;
  /** KiB, minified. */
  readonly minified: number;
  /** Its share of the KiB of the bundle with gzip. */
  readonly gzip: number;
}

/** Folders whose own folders are parts: one for each protocol, and what has its own page. */
const DIVIDED: readonly string[] = ['protocols', 'metering', 'ledger'];

/** The rest: files directly in `src`, and packages. */
const OTHERS = 'others';

/** What the deployed Worker's bundle consists of, the largest part first. */
export async function computeParts(): Promise<readonly Part[]> {
  const bytes = await deployedBytes();
  const bundle = await deployedBundle();
  const sums = new Map<string, number>();
  for (const [path, count] of bytes) {
    const folder = partOf(path);
    sums.set(folder, (sums.get(folder) ?? 0) + count);
  }
  const share = kib(bundle) / bundle.length;
  return [...sums]
    .filter(([, count]) => count >= 1024)
    .sort(([, one], [, other]) => other - one)
    .map(([folder, count]) => ({
      folder,
      minified: oneDecimal(count / 1024),
      gzip: oneDecimal(count * share),
    }));
}

function partOf(path: string): string {
  const [root = '', folder = '', inner, ...rest] = path.split('/');
  if (root !== 'src' || inner === undefined) return OTHERS;
  return DIVIDED.includes(folder) && rest.length > 0 ? `${folder}/${inner}` : folder;
}

function oneDecimal(value: number): number {
  return Math.round(value * 10) / 10;
}

/** The page with the table of the parts as they are computed. */
export function withParts(page: string, parts: readonly Part[]): string {
  const rows = parts.map(({ folder, minified, gzip }) => {
    return `| ${folder === OTHERS ? OTHERS : `\`src/${folder}\``} | ${minified} | ${gzip} |`;
  });
  return withRows(page, '| folder |', rows);
}

/** The KiB, minified, of the parts that the page has. */
export function writtenParts(page: string): ReadonlyMap<string, number> {
  const rows = page.matchAll(/^\| `src\/([\w/-]+)` \| ([\d.]+) \| [\d.]+ \|$/gm);
  return new Map([...rows].map(([, folder = '', minified]) => [folder, Number(minified)]));
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
  return [...page.matchAll(/^\| (?:`(\w+)\(\)`|(none)) \| ([\d.]+) \| ([\d.]+) \|$/gm)].map(
    ([, named, none, alone, without]) => ({
      feature: named ?? none ?? '',
      alone: Number(alone),
      without: Number(without),
    }),
  );
}
