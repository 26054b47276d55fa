/** Tests the files that Cloudflare's deploy button reads: secrets, descriptions and bindings. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { expect, test } from 'vitest';
import { PROVIDERS, secretSettings } from '../src/providers/index.ts';
import { FEATURES } from '../src/settings/feature-settings.ts';
import { decodeObject, objectOf, objectsOf, textOf } from '../tools/simulator/json.ts';
import { readSettings } from './settings/read-settings.ts';

const ROOT = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** The settings that are secrets. */
function secrets(): string[] {
  const keys = PROVIDERS.flatMap(secretSettings);
  const names = new Set(keys);
  readSettings(new Proxy({}, { get: (_, name) => void (typeof name === 'string' && names.add(name)) }));
  return [...names]
    .filter(
      (name) => keys.includes(name) || /(_API_KEY|_HASH_KEY|_TOKEN|_SECRET|_PASSWORD|ALERT_URL)$/.test(name),
    )
    .sort();
}

const example = read('.dev.vars.example');
const descriptions = objectOf(objectOf(decodeObject(read('package.json'))?.cloudflare).bindings);
const config = parse(read('wrangler.toml'));

test('W3 .dev.vars.example names every secret, without values', () => {
  const named = [...example.matchAll(/^(?:# )?([A-Z][A-Z0-9_]*)=(.*)$/gm)];
  const names = named.map(([, name]) => name);
  const lines = secrets()
    .filter((name) => !names.includes(name))
    .map((name) => `.dev.vars.example lacks a line: # ${name}=`);
  expect(lines, lines.join('\n')).toEqual([]);
  expect(names.sort()).toEqual(secrets());
  expect(named.map(([, , value]) => value).join('')).toBe('');
});

test('W3 the deploy button prompts only for secrets that every deployment needs', () => {
  const requested = [...example.matchAll(/^([A-Z][A-Z0-9_]*)=/gm)].map(([, name]) => name);
  expect(requested).toEqual(['ADMIN_TOKEN']);
});

test('W3 package.json describes every secret and every binding in wrangler.toml', () => {
  const stores = objectsOf(config.kv_namespaces).map(({ binding }) => textOf(binding));
  const objects = objectsOf(objectOf(config.durable_objects).bindings).map(({ name }) => textOf(name));
  const missing = secrets()
    .filter((name) => !Object.hasOwn(descriptions, name))
    .map((name) => `package.json lacks a description: cloudflare.bindings.${name}`);
  expect(missing, missing.join('\n')).toEqual([]);
  expect(Object.keys(descriptions).sort()).toEqual([...secrets(), ...stores, ...objects].sort());
  for (const described of Object.values(descriptions))
    expect(textOf(objectOf(described).description)).toMatch(/\.$/);
});

test('W3 wrangler.toml has every binding that Weir reads, enabled or commented out', () => {
  const source = read('src/environment.ts');
  const ofCore = [...source.matchAll(/^ {2}readonly ([A-Z_]+)\?:/gm)].map(([, name]) => name);
  expect(ofCore).toHaveLength(2);
  const bindings = [...ofCore, ...FEATURES.flatMap((feature) => feature.bindings)];
  const toml = read('wrangler.toml');
  for (const name of bindings) expect(toml).toMatch(new RegExp(`^(# )?(binding|name) = "${name}"$`, 'm'));
  expect(objectsOf(config.kv_namespaces).map(({ binding }) => binding)).toEqual(['WEIR_KV']);
});

test('the Miniflare that starts the end-to-end tests is the one that wrangler brings, so there is one workerd', () => {
  const wrangler = objectOf(decodeObject(read('node_modules/wrangler/package.json'))?.dependencies);
  const own = objectOf(decodeObject(read('package.json'))?.devDependencies);
  expect(own.miniflare).toBe(wrangler.miniflare);
});
