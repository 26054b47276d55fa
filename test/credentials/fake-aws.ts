/** AWS's hosts as a `fetch`: STS, and APIs that AWS signs for. Checks each signature with AWS's own package. */
import { type AwsIdentity, accessKeyOf, awsRefusal, bytesOf } from '../../tools/simulator/aws.ts';

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

export class FakeAws {
  readonly identities = new Map<string, AwsIdentity>();
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
    const accessKeyId = accessKeyOf(headers);
    const now = this.#options.now();
    const { identities } = this;
    const refused = await awsRefusal(url, init, { service, region, identities, now });
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
}
