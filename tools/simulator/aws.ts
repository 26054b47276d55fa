/**
 * Checks signatures of AWS with AWS's own package, and refuses as AWS does: the codes and sentences of its common errors
 * (docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html, 2026-11-28).
 */
import { createHash, createHmac } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';

/** Who may sign. */
export interface AwsIdentity {
  readonly secret: string;
  readonly token?: string;
  /** In ms since the epoch. */
  readonly endsAt?: number;
  /** What its policies do not allow. */
  readonly forbidden?: readonly ('sts:AssumeRole' | 'bedrock:InvokeModel')[];
}

/** The service that a request arrives at. */
interface AwsService {
  readonly service: string;
  readonly region: string;
  readonly identities: ReadonlyMap<string, AwsIdentity>;
  /** AWS's clock, in ms since the epoch. */
  readonly now: number;
}

/** AWS's own window for the time of a signature. */
const WINDOW_MS = 5 * 60_000;

class Sha256 {
  readonly #hash;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(secret));
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytesOf(data));
  }

  async digest(): Promise<Uint8Array> {
    return new Uint8Array(this.#hash.digest());
  }

  reset(): void {}
}

export function bytesOf(data: string | ArrayBuffer | ArrayBufferView): Buffer {
  if (typeof data === 'string') return Buffer.from(data);
  return ArrayBuffer.isView(data)
    ? Buffer.from(data.buffer, data.byteOffset, data.byteLength)
    : Buffer.from(data);
}

/** Whether AWS's own package signs the request in the same way. */
export async function isSigned(
  url: string,
  { method = 'GET', headers, body }: RequestInit,
  keys: { readonly id: string; readonly secret: string; readonly token?: string | undefined },
): Promise<boolean> {
  const sent = new Headers(headers);
  const { hostname, host, pathname, searchParams, protocol } = new URL(url);
  const authorization = sent.get('authorization') ?? '';
  const [, names = ''] = /SignedHeaders=([^,]+)/.exec(authorization) ?? [];
  const [, region = '', service = ''] =
    /Credential=[^/]+\/\d{8}\/([^/]+)\/([^/]+)\//.exec(authorization) ?? [];
  const signed = Object.fromEntries(
    names.split(';').map((name) => [name, name === 'host' ? host : (sent.get(name) ?? '')]),
  );
  // Without these a signature does not cover what is sent.
  const unsigned = [...sent.keys()].filter((name) => name.startsWith('x-amz-') && !names.includes(name));
  if (!names.split(';').includes('host') || unsigned.length > 0) return false;
  const time = (signed['x-amz-date'] ?? '').replace(/(....)(..)(..T..)(..)/, '$1-$2-$3:$4:');
  const verifier = new SignatureV4({
    credentials: {
      accessKeyId: keys.id,
      secretAccessKey: keys.secret,
      ...(keys.token !== undefined && { sessionToken: keys.token }),
    },
    region,
    service,
    sha256: Sha256,
    applyChecksum: false,
  });
  const query: Record<string, string[]> = {};
  for (const [name, value] of searchParams) query[name] = [...(query[name] ?? []), value];
  const request = { method, protocol, hostname, path: pathname, query, headers: signed, body: body ?? '' };
  const again = await verifier.sign(request, { signingDate: new Date(time) });
  return again.headers.authorization === authorization;
}

/** The key of a signature, or an empty text. */
export function accessKeyOf(headers: Headers): string {
  return /Credential=([^/]+)\//.exec(headers.get('authorization') ?? '')?.[1] ?? '';
}

/** Whether the request has a signature in the place of a key. */
export function hasSignature(authorization: string | undefined): boolean {
  return authorization?.startsWith('AWS4-HMAC-SHA256 ') === true;
}

/** Who may sign requests to the simulator, and for which region. */
export const SIMULATED_AWS = {
  accessKeyId: 'AKIDSIMULATOR',
  secretAccessKey: 'sim-aws-secret/5b1e+c7==',
  region: 'eu-central-1',
} as const;

/** Why AWS refuses a request: the code of the error, a colon and its sentence; null: it does not. */
export async function awsRefusal(
  url: string,
  init: RequestInit,
  { service, region, identities, now }: AwsService,
): Promise<string | null> {
  const headers = new Headers(init.headers);
  const accessKeyId = accessKeyOf(headers);
  const identity = identities.get(accessKeyId);
  const token = headers.get('x-amz-security-token') ?? undefined;
  if (identity === undefined || identity.token !== token) {
    const code = service === 'sts' ? 'InvalidClientTokenId' : 'UnrecognizedClient';
    return `${code}: The security token included in the request is invalid.`;
  }
  const signature = service === 'sts' ? 'SignatureDoesNotMatch' : 'InvalidSignature';
  const time = headers.get('x-amz-date') ?? '';
  const signedAt = Date.parse(time.replace(/(....)(..)(..T..)(..)/, '$1-$2-$3:$4:'));
  const basic = (ms: number) => new Date(ms).toISOString().replace(/[:-]|\.\d{3}/g, '');
  if (signedAt < now - WINDOW_MS) {
    return `${signature}: Signature expired: ${time} is now earlier than ${basic(now - WINDOW_MS)} (${basic(now)} - 5 min.)`;
  }
  if (signedAt > now + WINDOW_MS) {
    return `${signature}: Signature not yet current: ${time} is still later than ${basic(now + WINDOW_MS)} (${basic(now)} + 5 min.)`;
  }
  const [, ofRegion = '', ofService = ''] =
    /Credential=[^/]+\/\d{8}\/([^/]+)\/([^/]+)\//.exec(headers.get('authorization') ?? '') ?? [];
  if (ofRegion !== region) return `${signature}: Credential should be scoped to a valid region. `;
  if (ofService !== service)
    return `${signature}: Credential should be scoped to correct service: '${service}'. `;
  if (!(await isSigned(url, init, { id: accessKeyId, secret: identity.secret, token }))) {
    return `${signature}: The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.`;
  }
  if (identity.endsAt !== undefined && now >= identity.endsAt)
    return 'ExpiredToken: The security token included in the request is expired';
  const action = service === 'sts' ? 'sts:AssumeRole' : 'bedrock:InvokeModel';
  if (identity.forbidden?.includes(action)) {
    return `AccessDenied: User: arn:aws:iam::123456789012:user/weir is not authorized to perform: ${action} on resource: arn:aws:x because no identity-based policy allows the ${action} action`;
  }
  return null;
}
