/** Signatures of AWS: AWS's test vectors, its own package as a verifier of random requests, and what is cached. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { AwsSigner, canonicalRequest } from '../../src/credentials/aws-signature.ts';
import { encodeUtf8 } from '../../src/shared/encoding.ts';
import { isSigned } from '../../tools/simulator/aws.ts';
import { decodeObject, objectOf, textOf } from '../../tools/simulator/json.ts';

Object.assign(Uint8Array.prototype, {
  toHex(this: Uint8Array) {
    return Buffer.from(this).toString('hex');
  },
});

const VECTORS = join(import.meta.dirname, '../../../shared/vectors/aws-sigv4.json');
const vectors = existsSync(VECTORS) ? objectOf(decodeObject(readFileSync(VECTORS, 'utf8'))) : {};
const CASES = Object.entries(objectOf(vectors.cases)).map(([name, one]) => [name, objectOf(one)] as const);

/** A raw request of the vectors. Lines that begin with a space continue a header, and values of one name are a list. */
function parse(raw: string) {
  const [head = '', ...bodies] = raw.split('\n\n');
  const [line = '', ...lines] = head.split('\n');
  const [method = '', target = ''] = /^(\S+) (.*) HTTP\/1\.1$/.exec(line)?.slice(1) ?? [];
  const headers = new Map<string, string>();
  let last = '';
  for (const one of lines) {
    const colon = one.indexOf(':');
    const isMore = one.startsWith(' ');
    const name = isMore ? last : one.slice(0, colon).toLowerCase();
    const value = (isMore ? one : one.slice(colon + 1)).trim();
    headers.set(name, headers.has(name) ? `${headers.get(name)},${value}` : value);
    last = name;
  }
  return {
    method,
    url: new URL(`https://${headers.get('host')}${target}`),
    headers,
    body: bodies.join('\n\n'),
  };
}

async function digest(text: string): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', encodeUtf8(text))).toHex();
}

describe.runIf(existsSync(VECTORS))('AWS’s vectors', () => {
  test.each(CASES)('%s: the canonical request is AWS’s', async (_, one) => {
    const { method, url, headers, body } = parse(textOf(one.request));
    const { text } = canonicalRequest({
      method,
      // The vectors encode a path once.
      path: url.pathname,
      query: url.search,
      headers: [...headers],
      bodyHash: await digest(body),
    });
    expect(text).toBe(textOf(one.canonical_request));
  });

  test('the signatures of those whose headers Weir signs are AWS’s', async () => {
    let compared = 0;
    for (const [name, one] of CASES) {
      const { method, url, headers, body } = parse(textOf(one.request));
      const own = [...headers.keys()].every((name) => /^(?:host|content-type|x-amz-.*)$/.test(name));
      // Weir's paths are encoded twice.
      if (!own || url.pathname.includes('%')) continue;
      const token = headers.get('x-amz-security-token') ?? null;
      const signer = new AwsSigner({
        accessKeyId: textOf(objectOf(vectors.credential).access_key_id),
        secretAccessKey: textOf(objectOf(vectors.credential).secret_access_key),
        sessionToken: token,
      });
      const {
        'x-amz-date': __,
        'x-amz-security-token': ___,
        host: ____,
        ...rest
      } = Object.fromEntries(headers);
      const signed = await signer.sign(
        { method, url: url.href, headers: rest, body: encodeUtf8(body) },
        { region: 'us-east-1', service: 'service' },
        Date.UTC(2015, 7, 30, 12, 36),
      );
      expect(signed.authorization, name).toBe(textOf(one.authorization));
      compared++;
    }
    expect(compared).toBeGreaterThan(8);
  });
});

const keys = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG', sessionToken: null };
const scope = { region: 'eu-central-1', service: 'bedrock' };
const NOW = Date.UTC(2026, 10, 28, 19);

test('random requests: AWS’s own package signs them in the same way', async () => {
  const url = fc
    .tuple(
      fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }), { maxLength: 4 }),
      fc.array(
        fc.tuple(
          fc.string({ unit: 'grapheme', minLength: 1, maxLength: 6 }),
          fc.string({ unit: 'grapheme', maxLength: 6 }),
        ),
      ),
    )
    .map(([segments, query]) => {
      const path = segments.map((segment) => encodeURIComponent(segment.toWellFormed())).join('/');
      const search = new URLSearchParams(query.map(([a, b]) => [a.toWellFormed(), b.toWellFormed()]));
      return `https://runtime.eu-central-1.amazonaws.com/model/${path}?${search}`;
    });
  await fc.assert(
    fc.asyncProperty(
      url,
      fc.uint8Array({ maxLength: 64 }),
      fc.option(fc.base64String({ minLength: 4 })),
      async (href, body, token) => {
        const signer = new AwsSigner({ ...keys, sessionToken: token || null });
        const headers = {
          'content-type': 'application/json',
          accept: 'text/event-stream',
          'x-amz-trace': ' a  b ',
        };
        const init = { method: 'POST', headers, body: new Uint8Array(body) };
        const signed = await signer.sign({ ...init, url: href }, scope, NOW);
        const sent = { ...init, headers: { ...headers, ...signed } };
        expect(
          await isSigned(href, sent, {
            id: keys.accessKeyId,
            secret: keys.secretAccessKey,
            token: token || undefined,
          }),
        ).toBe(true);
        const other = { ...sent, body: new Uint8Array([...body, 1]) };
        expect(
          await isSigned(href, other, {
            id: keys.accessKeyId,
            secret: keys.secretAccessKey,
            token: token || undefined,
          }),
        ).toBe(false);
      },
    ),
    { numRuns: 60 },
  );
});

test('the path of a model with a colon, and of an ARN: encoded twice', async () => {
  const signer = new AwsSigner(keys);
  for (const id of [
    'us.amazon.nova-micro-v1:0',
    'arn:aws:bedrock:eu-central-1:1:application-inference-profile/a1',
  ]) {
    for (const model of [id, encodeURIComponent(id)]) {
      const url = `https://bedrock-runtime.eu-central-1.amazonaws.com/model/${model}/converse-stream`;
      const init = {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: encodeUtf8('{}'),
      };
      const signed = await signer.sign({ ...init, url }, scope, NOW);
      const sent = { ...init, headers: { ...init.headers, ...signed } };
      expect(await isSigned(url, sent, { id: keys.accessKeyId, secret: keys.secretAccessKey })).toBe(true);
    }
  }
});

test('keys of the day are derived once for each day, region and service', async () => {
  const derived = vi.spyOn(crypto.subtle, 'importKey');
  const signer = new AwsSigner(keys);
  const request = { method: 'POST', url: 'https://x.example/', headers: {}, body: encodeUtf8('') };
  for (let i = 0; i < 5; i++) await signer.sign(request, scope, NOW + i);
  expect(derived).toHaveBeenCalledTimes(5);
  await signer.sign(request, { ...scope, service: 'bedrock-mantle' }, NOW);
  expect(derived).toHaveBeenCalledTimes(10);
  await signer.sign(request, scope, NOW + 86_400_000);
  expect(derived).toHaveBeenCalledTimes(15);
  derived.mockRestore();
});
