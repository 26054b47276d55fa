/**
 * AWS's hosts as a `fetch`: STS, and APIs that AWS signs for. Checks each signature with AWS's own package, and refuses as AWS does: the
 * codes and sentences of its common errors (docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html, 2026-11-28).
 */
import { createHash, createHmac } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';

/** Who may sign. */
interface Identity {
  readonly secret: string;
  readonly token?: string;
  /** In ms since the epoch. */
  readonly endsAt?: number;
  /** What its policies do not allow. */
  readonly forbidden?: readonly ('sts:AssumeRole' | 'bedrock:InvokeModel')[];
}

/** A request that arrived, after its signature was checked. */
export interface AwsRequest {
  readonly url: string;
  readonly service: string;
  readonly headers: Headers;
  readonly body: RequestInit['body'];
  readonly text: string;
  readonly accessKeyId: string;
  readonly refused: string | null;
}

export interface AwsOptions {
  /** AWS's clock. */
  readonly now: () => number;
  /** What the service answers to an accepted request. */
  readonly answer: (request: AwsRequest, init: RequestInit) => Response | Promise<Response>;
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

function bytesOf(data: string | ArrayBuffer | ArrayBufferView): Buffer {
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

export class FakeAws {
  readonly identities = new Map<string, Identity>();
  readonly requests: AwsRequest[] = [];
  /** The next answers of STS in place of its own. */
  readonly stsAnswers: (() => Response | Promise<Response>)[] = [];
  /** How long a session lasts. */
  sessionMs = 3_600_000;
  /** Awaited before STS answers. */
  beforeSession: () => Promise<void> = async () => {};
  readonly #options: AwsOptions;
  #sessions = 0;

  constructor(options: AwsOptions) {
    this.#options = options;
  }

  /** The requests to STS. */
  get sessionCalls(): number {
    return this.requests.filter(({ service }) => service === 'sts').length;
  }

  readonly fetch = async (input: Request | string, init: RequestInit = {}): Promise<Response> => {
    const url = typeof input === 'string' ? input : input.url;
    const headers = new Headers(init.headers);
    const text = init.body == null ? '' : bytesOf(init.body as string | Uint8Array).toString();
    const { hostname } = new URL(url);
    const [host = '', region = ''] = hostname.split('.');
    const service = host === 'bedrock-runtime' ? 'bedrock' : host;
    const authorization = headers.get('authorization') ?? '';
    const [, accessKeyId = ''] = /Credential=([^/]+)\//.exec(authorization) ?? [];
    const refused = await this.#refusal(url, init, { service, region, accessKeyId });
    const request = { url, service, headers, body: init.body, text, accessKeyId, refused };
    this.requests.push(request);
    if (service === 'sts') return this.#sts(refused);
    if (refused === null) return this.#options.answer(request, init);
    const [code = '', message = ''] = refused.split(': ', 2);
    return this.#refuse(JSON.stringify({ message: refused.slice(code.length + 2) || message }), {
      'x-amzn-errortype': `${code}Exception:http://internal.amazon.com/coral/com.amazon.coral.service/`,
    });
  };

  async #sts(refused: string | null): Promise<Response> {
    await this.beforeSession();
    const own = this.stsAnswers.shift();
    if (own !== undefined) return own();
    if (refused !== null) {
      const [code = ''] = refused.split(': ', 1);
      const message = refused.slice(code.length + 2).replaceAll('&', '&amp;');
      return this.#refuse(
        `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`,
      );
    }
    this.#sessions++;
    const id = `ASIASESSION${this.#sessions}`;
    const [secret, token] = [`session/secret+${this.#sessions}==`, `session/token+${this.#sessions}==`];
    const endsAt = this.#options.now() + this.sessionMs;
    this.identities.set(id, { ...this.identities.get('role'), secret, token, endsAt });
    const result = `<Credentials><AccessKeyId>${id}</AccessKeyId><SecretAccessKey>${secret}</SecretAccessKey><SessionToken>${token}</SessionToken><Expiration>${new Date(endsAt).toISOString()}</Expiration></Credentials>`;
    return new Response(
      `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>${result}</AssumeRoleResult></AssumeRoleResponse>`,
      { headers: { 'content-type': 'text/xml' } },
    );
  }

  #refuse(body: string, headers: Record<string, string> = {}): Response {
    const date = new Date(this.#options.now()).toUTCString();
    return new Response(body, { status: 403, headers: { date, ...headers } });
  }

  async #refusal(
    url: string,
    init: RequestInit,
    { service, region, accessKeyId }: { service: string; region: string; accessKeyId: string },
  ): Promise<string | null> {
    const headers = new Headers(init.headers);
    const identity = this.identities.get(accessKeyId);
    const token = headers.get('x-amz-security-token') ?? undefined;
    if (identity === undefined || identity.token !== token) {
      const code = service === 'sts' ? 'InvalidClientTokenId' : 'UnrecognizedClient';
      return `${code}: The security token included in the request is invalid.`;
    }
    const now = this.#options.now();
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
}
