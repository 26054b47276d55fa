/** The part of Cloudflare's API that wrangler 4.155 calls for the set-up, with its state in memory. */
import { createServer } from 'node:http';
import { decodeObject, type Json, type JsonObject, objectOf, textOf } from '../simulator/json.ts';

export interface FakeCloudflare {
  /** The value of CLOUDFLARE_API_BASE_URL. */
  readonly url: string;
  /** Every request, such as `PUT /workers/scripts/weir`, without the account. */
  readonly requests: string[];
  /** Ids by title. */
  readonly namespaces: Map<string, string>;
  /** Names of R2 buckets, each with its jurisdiction before it, such as `eu/weir-archive`. */
  readonly buckets: Set<string>;
  /** The bindings that were uploaded, by script. */
  readonly uploads: Map<string, readonly Json[]>;
  /** Values by name, for each script. */
  readonly secrets: Map<string, Map<string, string>>;
  /** Requests that are answered with a 500. */
  readonly failing: Set<string>;
  close(): void;
}

interface Answer {
  readonly status?: number;
  readonly result: Json;
  readonly error?: JsonObject;
}

const NOT_FOUND: Answer = { status: 404, result: null };
const BUCKET_EXISTS: Answer = {
  status: 409,
  result: null,
  error: { code: 10004, message: 'The bucket you tried to create already exists, and you own it.' },
};

export async function startFakeCloudflare(): Promise<FakeCloudflare> {
  const requests: string[] = [];
  const namespaces = new Map<string, string>();
  const buckets = new Set<string>();
  const uploads = new Map<string, readonly Json[]>();
  const secrets = new Map<string, Map<string, string>>();
  const failing = new Set<string>();

  async function answer(
    method: string,
    path: string,
    query: URLSearchParams,
    body: Response,
    jurisdiction: string,
  ): Promise<Answer> {
    if (failing.has(`${method} ${path}`))
      return { status: 500, result: null, error: { code: 10000, message: 'Internal error' } };
    const script = /^\/workers\/(?:scripts|services|workers)\/([^/]+)/.exec(path)?.[1] ?? '';
    const isKnown = uploads.has(script);
    const route = `${method} ${script === '' ? path : path.replace(script, ':script')}`;
    switch (route) {
      case 'GET /storage/kv/namespaces':
        // One page. wrangler asks for pages until one is empty.
        return {
          result:
            Number(query.get('page') ?? 1) > 1 ? [] : [...namespaces].map(([title, id]) => ({ title, id })),
        };
      case 'POST /storage/kv/namespaces': {
        const title = textOf(decodeObject(await body.text())?.title);
        const id = String(namespaces.size + 1).repeat(32);
        namespaces.set(title, id);
        return { result: { title, id } };
      }
      case 'GET /r2/buckets': {
        const own = [...buckets].filter((name) => name.startsWith(`${jurisdiction}/`));
        return { result: { buckets: own.map((name) => ({ name: name.slice(jurisdiction.length + 1) })) } };
      }
      case 'POST /r2/buckets': {
        const name = `${jurisdiction}/${textOf(decodeObject(await body.text())?.name)}`;
        if (buckets.has(name)) return BUCKET_EXISTS;
        buckets.add(name);
        return { result: { name } };
      }
      case 'GET /workers/services/:script':
        return isKnown
          ? {
              result: {
                default_environment: {
                  environment: 'production',
                  script: { last_deployed_from: 'wrangler' },
                },
              },
            }
          : NOT_FOUND;
      case 'GET /workers/scripts/:script/settings':
        return { result: { bindings: [...(uploads.get(script) ?? [])] } };
      case 'GET /workers/scripts/:script/secrets':
        return isKnown
          ? {
              result: [...(secrets.get(script)?.keys() ?? [])].map((name) => ({ name, type: 'secret_text' })),
            }
          : NOT_FOUND;
      case 'PATCH /workers/scripts/:script/secrets-bulk': {
        const stored = secrets.get(script) ?? new Map<string, string>();
        for (const [name, secret] of Object.entries(objectOf(decodeObject(await body.text())?.secrets)))
          stored.set(name, textOf(objectOf(secret).text));
        secrets.set(script, stored);
        return { result: null };
      }
      case 'GET /workers/scripts/:script/deployments':
        return { result: { deployments: [] } };
      case 'POST /workers/scripts/:script/assets-upload-session':
        return { result: { jwt: 'fake-jwt', buckets: [] } };
      case 'PUT /workers/scripts/:script': {
        const metadata = decodeObject(String((await body.formData()).get('metadata')));
        uploads.set(script, Array.isArray(metadata?.bindings) ? metadata.bindings : []);
        return { result: { id: script, startup_time_ms: 5, deployment_id: 'd1', entry_point: 'index.js' } };
      }
      case 'GET /workers/subdomain':
        return { result: { subdomain: 'acme' } };
      case 'GET /workers/workers/:script':
        return { result: { subdomain: { enabled: true, previews_enabled: true } } };
      case 'POST /workers/scripts/:script/subdomain':
        return { result: { enabled: true, previews_enabled: true } };
      case 'PUT /workers/scripts/:script/schedules':
        return { result: { schedules: [] } };
      default:
        return { result: [] };
    }
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://cloudflare.invalid');
      const path = pathname.replace(/^\/client\/v4(\/accounts\/[^/]+)?/, '');
      const method = request.method ?? '';
      requests.push(`${method} ${path}`);
      const type = request.headers['content-type'] ?? 'application/json';
      const body = new Response(Buffer.concat(chunks), { headers: { 'content-type': type } });
      const jurisdiction = String(request.headers['cf-r2-jurisdiction'] ?? 'default');
      const { status = 200, result, error } = await answer(method, path, searchParams, body, jurisdiction);
      const missing = { code: 10007, message: 'This Worker does not exist on your account.' };
      const errors = status < 400 ? [] : [error ?? missing];
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ success: status < 400, errors, messages: [], result }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  return {
    url: `http://127.0.0.1:${port}/client/v4`,
    requests,
    namespaces,
    buckets,
    uploads,
    secrets,
    failing,
    close: () => server.close(),
  };
}
