/** The variables of the demo's gateway: every provider is the simulator, and so is what `--var` sets. */
import { PROFILES, PROVIDERS } from '../../src/providers/index.ts';
import { decodeObject, isObject, type JsonObject, objectOf, textOf } from './json.ts';
import { basePaths, cloudSettings, compatibleScenes } from './scenes.ts';

export const ADMIN_TOKEN = 'demo-admin';

/** A scene with another profile than that of its id. */
const LIKES: readonly (readonly [id: string, like: string])[] = [
  ['compatible', 'tolerant'],
  ...compatibleScenes.map(({ id, profile = id }) => [id, profile] as const),
];

/**
 * @param simulator its URL
 * @param given the variables of `--var`. Servers of `PROVIDERS` are replaced by the simulator, and secrets that they name are set
 */
export function demoVariables(
  simulator: string,
  given: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const own = LIKES.map(([id, like]): [string, JsonObject] => [
    id,
    { base_url: `${simulator}/${id}/v1`, api_key: 'COMPATIBLE_API_KEY', like },
  ]);
  const settings: Record<string, string> = {
    AUTH: 'keys',
    // Reports by tag need it.
    LEDGER: 'object',
    ADMIN_TOKEN,
    RESPONSES: 'durable',
    COMPATIBLE_API_KEY: 'sim-compatible',
  };
  const clouds = cloudSettings(simulator);
  for (const [id, ofCloud] of Object.entries(clouds)) {
    const key = PROVIDERS.find((provider) => provider.id === id)?.apiKeySettings[0];
    if (key !== undefined) Object.assign(settings, ofCloud, { [key]: `sim-${id}` });
  }
  for (const [name, path] of Object.entries(basePaths)) {
    if (LIKES.some(([id]) => id === name) || name in clouds) continue;
    settings[`${name.toUpperCase()}_API_KEY`] = `sim-${name}`;
    settings[`${name.toUpperCase()}_BASE_URL`] = simulator + path;
  }
  const entries = decodeObject(given.PROVIDERS ?? '{}');
  // Weir names what is wrong with it.
  if (entries === undefined) return { ...settings, ...given };
  const simulated = Object.entries(entries).map(([id, entry]): [string, unknown] => [
    id,
    isObject(entry) ? simulatedEntry(simulator, entry) : entry,
  ]);
  const servers = JSON.stringify({ ...Object.fromEntries(own), ...Object.fromEntries(simulated) });
  return { ...settings, ...secretsOf(entries), ...given, PROVIDERS: servers };
}

/** The entry with the scene of its host, as Weir has its profile by the host; any other server is the scene `compatible`. */
function simulatedEntry(simulator: string, entry: JsonObject): JsonObject {
  const url = textOf(entry.base_url);
  if (!URL.canParse(url) || !/^https?:/.test(url)) return entry;
  const { hostname } = new URL(url);
  const profile = PROFILES.find(({ hosts }) => hosts.includes(hostname));
  const path = Object.entries(basePaths).find(([name]) => name === profile?.id)?.[1] ?? '/compatible/v1';
  const like = entry.like ?? profile?.id;
  return { ...entry, base_url: simulator + path, ...(like !== undefined && { like }) };
}

/** A key for each secret that an entry names. */
function secretsOf(entries: JsonObject): Readonly<Record<string, string>> {
  const names = Object.values(entries).flatMap((entry) => {
    const { api_key, headers, query } = objectOf(entry);
    const texts = [...Object.values(objectOf(headers)), ...Object.values(objectOf(query))].map(textOf);
    return [textOf(api_key), ...texts.flatMap((text) => (text.startsWith('$') ? text.slice(1) : []))];
  });
  return Object.fromEntries(names.filter((name) => name !== '').map((name) => [name, `sim-${name}`]));
}
