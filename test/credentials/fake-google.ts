/** Google's token service and Vertex AI as a `fetch`: refuse what the real ones refuse. */
import { createVerify, generateKeyPairSync } from 'node:crypto';
import { decodeObject, type JsonObject, objectsOf, textOf } from '../../tools/simulator/json.ts';

const { privateKey, publicKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});

/** The key of a service account, as its JSON file has it. */
export const SERVICE_ACCOUNT: JsonObject = {
  type: 'service_account',
  project_id: 'acme-llm',
  private_key_id: 'k1',
  private_key: privateKey,
  client_email: 'weir@acme-llm.iam.gserviceaccount.com',
  token_uri: 'https://oauth2.googleapis.com/token',
};

export interface GoogleRequest {
  readonly url: string;
  readonly headers: Headers;
  readonly body: JsonObject;
}

const SECOND_MS = 1000;

export class FakeGoogle {
  readonly requests: GoogleRequest[] = [];
  exchanges = 0;
  isActive = true;
  /** The audience of its tokens. */
  audience = 'https://oauth2.googleapis.com/token';
  lifeSeconds = 3600;
  beforeToken: () => Promise<void> = async () => {};
  /** The next answers of the token service. */
  readonly tokenAnswers: (() => Response | Promise<Response>)[] = [];
  /** Called within each request to a model, before its token is looked at. */
  onRequest = () => {};
  /** The next answers of the models. */
  readonly answers: (() => Response)[] = [];
  readonly #tokens = new Map<string, number>();
  readonly #now: () => number;
  readonly #answer: (request: GoogleRequest) => Response;

  constructor(now: () => number, answer: (request: GoogleRequest) => Response) {
    this.#now = now;
    this.#answer = answer;
  }

  /** Ends all tokens. */
  revoke(): void {
    this.#tokens.clear();
  }

  readonly fetch = async (input: Request | string, init: RequestInit = {}): Promise<Response> => {
    const url = typeof input === 'string' ? input : input.url;
    const text =
      typeof init.body === 'string' ? init.body : new TextDecoder().decode(init.body as Uint8Array);
    const headers = new Headers(init.headers);
    if (new URL(url).hostname === 'oauth2.googleapis.com') return this.#token(new URLSearchParams(text));
    const body = decodeObject(text) ?? {};
    const request = { url, headers, body };
    this.requests.push(request);
    this.onRequest();
    const token = /^Bearer (.+)$/.exec(headers.get('authorization') ?? '')?.[1];
    const isKnown = token !== undefined && this.#now() < (this.#tokens.get(token) ?? 0);
    if (!isKnown && headers.get('x-goog-api-key') !== 'key-of-vertex') {
      const message =
        'Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.';
      return refuse(401, message, 'UNAUTHENTICATED');
    }
    return refusalOf(request) ?? this.answers.shift()?.() ?? this.#answer(request);
  };

  async #token(form: URLSearchParams): Promise<Response> {
    this.exchanges++;
    await this.beforeToken();
    const own = this.tokenAnswers.shift();
    if (own !== undefined) return own();
    const denied = (error_description: string) =>
      Response.json(
        { error: 'invalid_grant', error_description },
        { status: 400, headers: { date: new Date(this.#now()).toUTCString() } },
      );
    const [header = '', claims = '', signature = ''] = (form.get('assertion') ?? '').split('.');
    const given = decodeObject(Buffer.from(claims, 'base64url').toString()) ?? {};
    const isSigned = createVerify('RSA-SHA256')
      .update(`${header}.${claims}`)
      .verify(publicKey, signature, 'base64url');
    if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer')
      return denied('Bad Request');
    if (!isSigned) return denied('Invalid JWT Signature.');
    if (given.aud !== this.audience)
      return denied(
        'Invalid JWT: Failed audience check. The right audience is https://oauth2.googleapis.com/token',
      );
    const now = this.#now() / SECOND_MS;
    const [issued, ends] = [Number(given.iat), Number(given.exp)];
    if (issued > now + 300 || ends < now || ends - issued > 3600)
      return denied(
        'Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim.',
      );
    if (!this.isActive) return denied('Invalid grant: account not found');
    const token = `ya29.${this.exchanges}-${'t'.repeat(200)}`;
    this.#tokens.set(token, this.#now() + this.lifeSeconds * SECOND_MS);
    return Response.json({ access_token: token, expires_in: this.lifeSeconds, token_type: 'Bearer' });
  }
}

function refuse(code: number, message: string, status: string): Response {
  return Response.json({ error: { code, message, status } }, { status: code });
}

/** What Vertex refuses and AI Studio takes. */
function refusalOf({ url, headers, body }: GoogleRequest): Response | null {
  const parts = objectsOf(body.contents).flatMap(({ parts: ofTurn }) => objectsOf(ofTurn));
  const isMixed = objectsOf(body.contents).some(({ parts: ofTurn }) => {
    const results = objectsOf(ofTurn).filter((part) => part.functionResponse !== undefined);
    return results.length > 0 && results.length < objectsOf(ofTurn).length;
  });
  if (isMixed && url.includes('gemini-3'))
    return refuse(400, 'A content with function responses has no other parts.', 'INVALID_ARGUMENT');
  for (const part of parts) {
    const call = part.functionCall ?? part.functionResponse;
    if (typeof call === 'object' && call !== null && 'id' in call)
      return refuse(
        400,
        'Invalid JSON payload received. Unknown name "id" at \'contents[0].parts[0].function_call\': Cannot find field.',
        'INVALID_ARGUMENT',
      );
  }
  const tier = textOf(body.serviceTier ?? body.service_tier);
  if (tier !== '' && url.includes('enerateContent'))
    return refuse(
      400,
      `Invalid value at 'service_tier' (type.googleapis.com/google.cloud.aiplatform.v1beta1.ServiceTier), "${tier}"`,
      'INVALID_ARGUMENT',
    );
  if (url.includes('publishers/anthropic')) {
    if (body.anthropic_version !== 'vertex-2023-10-16')
      return refuse(400, 'anthropic_version: Field required', 'INVALID_ARGUMENT');
    const isCount = url.includes('count-tokens');
    if ((body.model !== undefined) !== isCount)
      return refuse(400, 'model: Extra inputs are not permitted', 'INVALID_ARGUMENT');
    if (isCount && headers.has('anthropic-beta'))
      return refuse(
        400,
        `Unexpected value(s) \`${textOf(headers.get('anthropic-beta'))}\` for the \`anthropic-beta\` header`,
        'INVALID_ARGUMENT',
      );
  }
  return null;
}
