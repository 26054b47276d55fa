/** Requests that AWS's signatures authorize: every door of Bedrock, roles, and each refusal with the setting that it is about. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { decodeObject, type JsonObject, textOf } from '../../tools/simulator/json.ts';
import { type AwsOptions, type AwsRequest, FakeAws } from '../credentials/fake-aws.ts';
import { readSettings } from '../settings/read-settings.ts';
import { FakeClock } from '../stream/fake-clock.ts';
import { LimitedGateway } from './limited-gateway.ts';
import { passing, settle } from './upstreams.ts';

afterEach(() => vi.restoreAllMocks());

const ID = 'AKIDEXAMPLE';
const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
const ENV = {
  AUTH: 'open',
  RETRIES: '0',
  HEARTBEAT_SECONDS: '0',
  AWS_ACCESS_KEY_ID: ID,
  AWS_SECRET_ACCESS_KEY: SECRET,
  AWS_REGION: 'eu-central-1',
};
const ROLE = 'arn:aws:iam::123456789012:role/weir';
const CLAUDE = 'us.anthropic.claude-haiku-4-5';
const OSS = 'openai.gpt-oss-120b';

const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };

function answer({ url, text }: AwsRequest): Response {
  if (url.endsWith('/models')) return Response.json({ object: 'list', data: [{ id: OSS, object: 'model' }] });
  if (url.endsWith('/converse')) {
    const message = { role: 'assistant', content: [{ text: 'Here.' }] };
    return Response.json({
      output: { message },
      stopReason: 'end_turn',
      usage: { inputTokens: 5, outputTokens: 3, totalTokens: 8 },
    });
  }
  if (url.endsWith('/messages')) {
    const content = [{ type: 'text', text: 'Here.' }];
    const shared = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn' };
    return Response.json({ ...shared, content, usage: { input_tokens: 5, output_tokens: 3 } });
  }
  const model = textOf(decodeObject(text)?.model);
  if (url.endsWith('/responses')) {
    const output = [
      {
        ...{ type: 'message', id: 'm1', role: 'assistant', status: 'completed' },
        content: [{ type: 'output_text', text: 'Here.', annotations: [] }],
      },
    ];
    return Response.json({
      id: 'r',
      object: 'response',
      status: 'completed',
      model,
      output,
      usage: { input_tokens: 5, output_tokens: 3, total_tokens: 8 },
    });
  }
  const message = { role: 'assistant', content: 'Here.' };
  return Response.json({ id: 'c', model, choices: [{ index: 0, message, finish_reason: 'stop' }], usage });
}

/** A gateway before an AWS with one identity. @param skewMs how far AWS's clock is ahead */
function gatewayOf(env: JsonObject = {}, skewMs = 0, answers: AwsOptions['answer'] = answer) {
  const clock = new FakeClock();
  const aws = new FakeAws({ now: () => clock.now() + skewMs, answer: answers });
  aws.identities.set(ID, { secret: SECRET });
  const gateway = new LimitedGateway({ ...ENV, ...env }, { fetch: aws.fetch, clock });
  const ask = async (model: string, fields: JsonObject = {}, path = '/v1/chat/completions') => {
    const messages = [{ role: 'user', content: 'Hello' }];
    const response = await gateway.post(path, 'x', { model: `bedrock/${model}`, messages, ...fields });
    const text = await response.text();
    const error = decodeObject(text)?.error as JsonObject | undefined;
    await settle();
    return { status: response.status, text, code: error?.code, message: textOf(error?.message) };
  };
  const record = () => gateway.logged.findLast(({ event }) => event === 'request') ?? {};
  return { aws, clock, gateway, ask, record };
}

describe('W11 signed requests', () => {
  test.each([
    [CLAUDE, 'bedrock'],
    ['anthropic.claude-haiku-4-5', 'bedrock-mantle'],
    ['us.openai.gpt-5.6-sol', 'bedrock'],
    ['us.meta.llama4-maverick-17b-instruct-v1:0', 'bedrock'],
    ['openai.gpt-5.6-luna', 'bedrock-mantle'],
    [OSS, 'bedrock-mantle'],
  ])('%s: AWS’s own package accepts the signature, for the service %s', async (model, service) => {
    for (const [path, fields] of [
      ['/v1/chat/completions', {}],
      ['/v1/messages', { max_tokens: 64 }],
      ['/v1/responses', { input: 'Hellö 👋', messages: undefined }],
    ] as const) {
      const { aws, ask } = gatewayOf();
      expect(await ask(model, fields, path), path).toMatchObject({ status: 200 });
      expect(aws.requests).toMatchObject([{ service, refused: null, accessKeyId: ID }]);
      const { headers } = aws.requests[0] ?? {};
      expect(headers?.get('x-api-key')).toBeNull();
      expect(headers?.get('authorization')).toContain(`/eu-central-1/${service}/aws4_request`);
    }
  });

  test('a session token is sent and signed', async () => {
    const { aws, ask } = gatewayOf({ AWS_SESSION_TOKEN: 'token/of+session==' });
    aws.identities.set(ID, { secret: SECRET, token: 'token/of+session==' });
    expect(await ask(OSS)).toMatchObject({ status: 200 });
    expect(aws.requests[0]?.headers.get('authorization')).toContain('x-amz-security-token');
  });

  test('each attempt, and each changed request, is signed anew', async () => {
    let refusals = 0;
    const { aws, clock, ask } = gatewayOf({ RETRIES: '1' }, 0, (request) => {
      clock.advance(1000);
      if (refusals++ === 0)
        return Response.json(
          {
            error: {
              message: "Unsupported parameter: 'seed' is not supported with this model.",
              param: 'seed',
              code: 'unsupported_parameter',
            },
          },
          { status: 400 },
        );
      return answer(request);
    });
    expect(await ask(OSS, { seed: 7 })).toMatchObject({ status: 200 });
    expect(aws.requests.map(({ refused }) => refused)).toEqual([null, null]);
    const [first, second] = aws.requests;
    expect(first?.text).toContain('seed');
    expect(second?.text).not.toContain('seed');
    expect(first?.headers.get('x-amz-date')).not.toBe(second?.headers.get('x-amz-date'));
  });

  test('the list of models is signed', async () => {
    const { aws, gateway } = gatewayOf();
    const listed = await (await gateway.fetch('/v1/models', 'x')).text();
    expect(listed).toContain(`bedrock/${OSS}`);
    const own = aws.requests.filter(({ url }) => url.includes('bedrock'));
    expect(own).toMatchObject([{ service: 'bedrock-mantle', refused: null }]);
  });

  test('a body of 400 KB: the bytes that are hashed are those that are sent, without a second copy', async () => {
    const hashed = vi.spyOn(crypto.subtle, 'digest');
    const { aws, ask } = gatewayOf();
    await ask(OSS, { messages: [{ role: 'user', content: 'é'.repeat(200_000) }] });
    const sent = aws.requests[0]?.body;
    expect(sent).toBeInstanceOf(Uint8Array);
    expect(hashed.mock.calls.map(([, data]) => data)).toContain(sent);
    const large = hashed.mock.calls.filter(([, data]) => data.byteLength > 100_000);
    expect(large).toHaveLength(1);
  });

  test('redirects are not followed', async () => {
    const seen: (string | undefined)[] = [];
    const away = { status: 307, headers: { location: 'https://evil.example/' } };
    const { ask } = gatewayOf({}, 0, (_, { redirect }) => {
      seen.push(redirect);
      return new Response(null, away);
    });
    expect(await ask(OSS)).toMatchObject({ status: 502, code: 'upstream_error' });
    expect(seen).toEqual(['manual']);
  });
});

describe('W11 which credential', () => {
  const overridden = (env: JsonObject) => {
    const read = readSettings(env);
    return {
      problems: 'problems' in read ? read.problems : [],
      overridden: 'overridden' in read ? read.overridden : undefined,
    };
  };

  test('AWS_BEARER_TOKEN_BEDROCK wins, with one log line', async () => {
    const { aws, ask } = gatewayOf({ AWS_BEARER_TOKEN_BEDROCK: 'key-of-aws' });
    await ask(OSS);
    expect(aws.requests[0]?.headers.get('authorization')).toBe('Bearer key-of-aws');
    expect(overridden({ ...ENV, AWS_BEARER_TOKEN_BEDROCK: 'k', AWS_ROLE_ARN: ROLE }).overridden).toEqual([
      { setting: 'AWS_ACCESS_KEY_ID', message: 'is not used, because AWS_BEARER_TOKEN_BEDROCK is set' },
    ]);
  });

  test.each([
    [
      { AWS_ACCESS_KEY_ID: ID, AWS_REGION: 'us-east-1' },
      'AWS_SECRET_ACCESS_KEY',
      'must be set, because AWS_ACCESS_KEY_ID is',
    ],
    [
      { AWS_SECRET_ACCESS_KEY: SECRET, AWS_REGION: 'us-east-1' },
      'AWS_ACCESS_KEY_ID',
      'must be set, because AWS_SECRET_ACCESS_KEY is',
    ],
    [
      { ...ENV, AWS_ROLE_ARN: 'weir' },
      'AWS_ROLE_ARN',
      'must be the ARN of a role: arn:aws:iam::123456789012:role/weir',
    ],
    [
      { ...ENV, AWS_REGION: undefined, AWS_ROLE_ARN: ROLE },
      'AWS_REGION',
      'must be set, because AWS_ACCESS_KEY_ID is: a region such as us-east-1',
    ],
    [{ ...ENV, AWS_REGION: 'hunter2/x' }, 'AWS_REGION', 'must be a region such as us-east-1'],
    [{ ...ENV, AWS_ACCESS_KEY_ID: 'AK ID' }, 'AWS_ACCESS_KEY_ID', 'must be one word of printable ASCII'],
  ])('%j: misconfigured by the name of the setting', (env, setting, message) => {
    expect(overridden(env).problems).toContainEqual({ setting, message });
  });

  test('keys of AWS that other code of the Worker uses, without a region: no problem, and one log line', () => {
    const env = { AWS_ACCESS_KEY_ID: ID, AWS_SECRET_ACCESS_KEY: SECRET };
    expect(overridden(env)).toEqual({
      problems: [],
      overridden: [{ setting: 'AWS_ACCESS_KEY_ID', message: 'is not used, because AWS_REGION is not set' }],
    });
  });
});

describe('W11 an entry of PROVIDERS', () => {
  const entryOf = (entry: JsonObject) => ({
    AWS_ACCESS_KEY_ID: undefined,
    AWS_SECRET_ACCESS_KEY: undefined,
    AWS_REGION: undefined,
    OTHER_ID: ID,
    OTHER_SECRET: SECRET,
    PROVIDERS: {
      bedrock: { base_url: 'https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1', ...entry },
    },
  });
  const aws = { access_key_id: 'OTHER_ID', secret_access_key: 'OTHER_SECRET' };

  test('the host tells region and service', async () => {
    const { aws: cloud, ask } = gatewayOf(entryOf({ auth: { aws } }));
    expect(await ask('m')).toMatchObject({ status: 200 });
    expect(cloud.requests).toMatchObject([{ service: 'bedrock', refused: null }]);
  });

  test('a proxy’s host does not: region and service are named', async () => {
    const proxied = entryOf({
      base_url: 'https://proxy.example/v1',
      auth: { aws: { ...aws, region: 'us-west-2', service: 'bedrock' } },
    });
    const { aws: cloud, ask } = gatewayOf(proxied);
    await ask('m');
    expect(cloud.requests[0]?.headers.get('authorization')).toContain('/us-west-2/bedrock/aws4_request');
  });

  test.each([
    [{ auth: { aws: { access_key_id: 'OTHER_ID' } } }, 'auth must be'],
    [
      { auth: { aws: { ...aws, access_key_id: 'AKID/x' } } },
      'auth.aws.access_key_id must be the name of a secret',
    ],
    [
      { auth: { aws: { ...aws, session_token: 'ABSENT_TOKEN' } } },
      'auth.aws.session_token names a secret that is not set: ABSENT_TOKEN',
    ],
    [{ auth: { aws: { ...aws, secret_access_key: 'ADMIN_TOKEN' } } }, "a secret of Weir's own"],
    [{ auth: { aws: { ...aws, regoin: 'x' } } }, 'auth.aws accepts only'],
    [
      { auth: { aws: { ...aws, role_arn: 'weir' } } },
      'role_arn of bedrock in PROVIDERS must be the ARN of a role',
    ],
    [{ auth: { aws: { ...aws, service: 's3' } } }, 'auth.aws.service must be'],
    [{ auth: { aws }, base_url: 'https://proxy.example/v1' }, 'auth.aws needs region and service'],
    [{ auth: { aws }, api_key: 'OTHER_ID' }, 'api_key and auth are two credentials'],
    [{ auth: 'aws' }, 'auth must be'],
  ])('%j is invalid', (entry, message) => {
    const read = readSettings({ ...entryOf(entry), ADMIN_TOKEN: 'a' });
    const problems = 'problems' in read ? read.problems : [];
    expect(problems).toHaveLength(1);
    expect(problems[0]?.message).toContain(message);
    expect(JSON.stringify(problems)).not.toContain(SECRET);
  });
});

describe('W11 AssumeRole', () => {
  const env = { AWS_ROLE_ARN: ROLE };

  test('one session for the requests of its hour; it is renewed before it ends, by one request', async () => {
    const { aws, clock, ask } = gatewayOf(env);
    for (let i = 0; i < 3; i++) expect(await ask(OSS)).toMatchObject({ status: 200 });
    expect(aws.sessionCalls).toBe(1);
    const url = new URL(aws.requests[0]?.url ?? '');
    expect(url.origin).toBe('https://sts.eu-central-1.amazonaws.com');
    expect(Object.fromEntries(url.searchParams)).toMatchObject({ Action: 'AssumeRole', RoleArn: ROLE });
    expect(aws.requests.at(-1)?.accessKeyId).toBe('ASIASESSION1');
    clock.advance(3_600_000 - 4 * 60_000);
    expect(await ask(OSS)).toMatchObject({ status: 200 });
    // The renewal runs beside requests, and signs in other threads.
    const nextKey = async () => {
      expect(await ask(CLAUDE)).toMatchObject({ status: 200 });
      return aws.requests.at(-1)?.accessKeyId;
    };
    await expect.poll(nextKey).toBe('ASIASESSION2');
    expect(aws.sessionCalls).toBe(2);
  });

  test('1,000 concurrent requests of a fresh isolate: one call to STS', async () => {
    const { aws, clock, ask } = gatewayOf(env);
    const release = Promise.withResolvers<void>();
    aws.beforeSession = () => release.promise;
    const asked = Array.from({ length: 1000 }, () => ask(OSS));
    while (aws.sessionCalls === 0) await settle();
    clock.advance(1000);
    await settle();
    release.resolve();
    const statuses = (await passing(clock, Promise.all(asked))).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(aws.sessionCalls).toBe(1);
  });

  test('an exchange that was cut off: a waiter makes its own after the limit, and none waits longer', async () => {
    const { aws, clock, ask } = gatewayOf(env);
    aws.stsAnswers.push(() => new Promise<Response>(() => {}));
    const first = ask(OSS);
    await settle();
    const others = [ask(OSS), ask(OSS)];
    for (let i = 0; i < 120; i++) {
      clock.advance(100);
      await settle();
    }
    expect((await Promise.all([...others, first])).map(({ status }) => status)).toEqual(
      expect.arrayContaining([200]),
    );
    expect(aws.sessionCalls).toBeLessThanOrEqual(3);
  });

  test('a session that AWS ended before its time: a new one, and the request again', async () => {
    const { aws, ask } = gatewayOf(env);
    await ask(OSS);
    aws.identities.set('ASIASESSION1', { secret: 'other' });
    expect(await ask(OSS)).toMatchObject({ status: 200 });
    expect(aws.sessionCalls).toBe(2);
  });

  test.each([
    [
      'the role may not be assumed',
      { forbidden: ['sts:AssumeRole'] },
      "AWS STS refused this deployment's credential (403): the trust policy of AWS_ROLE_ARN, or the policies of AWS_ACCESS_KEY_ID, do not allow it",
    ],
    [
      'a wrong secret',
      { secret: 'other' },
      "AWS STS refused this deployment's credential (403): check AWS_SECRET_ACCESS_KEY",
    ],
  ] as const)('%s: the error is STS’s and names the setting', async (_, change, message) => {
    const { aws, ask, record } = gatewayOf(env);
    aws.identities.set(ID, { secret: SECRET, ...change });
    expect(await ask(OSS)).toMatchObject({ status: 502, code: 'upstream_credential', message });
    expect(record()).toMatchObject({ fault: 'deployment', error_code: 'upstream_credential' });
  });

  test('an unknown key', async () => {
    const { aws, ask } = gatewayOf(env);
    aws.identities.delete(ID);
    expect((await ask(OSS)).message).toBe(
      "AWS STS refused this deployment's credential (403): check AWS_ACCESS_KEY_ID",
    );
  });

  test('the role may not call the model: the error names the role', async () => {
    const { aws, ask, record } = gatewayOf(env);
    aws.identities.set('role', { secret: '', forbidden: ['bedrock:InvokeModel'] });
    expect(await ask(OSS)).toMatchObject({
      code: 'upstream_credential',
      message:
        "AWS Bedrock refused this deployment's credential (403): the policies of AWS_ROLE_ARN do not allow this request",
    });
    expect(record()).toMatchObject({ fault: 'deployment' });
  });

  test('STS answers 503 once: a second try; unreachable or without a session: its own error', async () => {
    const { aws, ask } = gatewayOf(env);
    aws.stsAnswers.push(() => new Response('', { status: 503 }));
    expect(await ask(OSS)).toMatchObject({ status: 200 });
    expect(aws.sessionCalls).toBe(2);
    const down = gatewayOf(env);
    down.aws.stsAnswers.push(
      () => Promise.reject(new Error('DNS')),
      () => Promise.reject(new Error('DNS')),
    );
    expect(await down.ask(OSS)).toMatchObject({
      code: 'upstream_unreachable',
      message: 'AWS STS could not be reached at sts.eu-central-1.amazonaws.com: check AWS_REGION',
    });
    const odd = gatewayOf(env);
    odd.aws.stsAnswers.push(() => new Response('<html>'));
    expect(await odd.ask(OSS)).toMatchObject({ code: 'upstream_error', message: 'AWS STS sent no session' });
  });
});

describe('W11 refusals name the setting', () => {
  test('a region whose host does not exist', async () => {
    const { ask } = gatewayOf({ AWS_REGION: 'eu-nowhere-1' }, 0, () => {
      throw new TypeError('getaddrinfo ENOTFOUND');
    });
    expect(await ask(OSS)).toMatchObject({
      code: 'upstream_unreachable',
      message: 'AWS Bedrock could not be reached: check AWS_REGION',
    });
  });

  const refused = (hint: string) => `AWS Bedrock refused this deployment's credential (403): ${hint}`;

  test.each([
    ['a wrong secret', { AWS_SECRET_ACCESS_KEY: 'other' }, {}, 'check AWS_SECRET_ACCESS_KEY'],
    ['an unknown key', { AWS_ACCESS_KEY_ID: 'AKIDOTHER' }, {}, 'check AWS_ACCESS_KEY_ID'],
    [
      'an ended session',
      { AWS_SESSION_TOKEN: 't0ken-of-x' },
      { token: 't0ken-of-x', endsAt: 1 },
      'AWS_SESSION_TOKEN has expired',
    ],
    [
      'a wrong session',
      { AWS_SESSION_TOKEN: 't0ken-of-x' },
      { token: 't0ken-of-y' },
      'check AWS_ACCESS_KEY_ID and AWS_SESSION_TOKEN',
    ],
    [
      'policies',
      {},
      { forbidden: ['bedrock:InvokeModel'] },
      'the policies of AWS_ACCESS_KEY_ID do not allow this request',
    ],
    [
      'another region',
      {
        AWS_REGION: 'us-east-1',
        BEDROCK_BASE_URL: 'https://bedrock-runtime.eu-west-1.amazonaws.com',
        BEDROCK_MANTLE_BASE_URL: 'https://bedrock-mantle.eu-west-1.api.aws',
      },
      {},
      'check AWS_REGION',
    ],
  ] as const)('%s', async (_, env, identity, hint) => {
    const { aws, ask, record, gateway } = gatewayOf(env);
    aws.identities.set(ID, { secret: SECRET, ...identity });
    for (const model of [OSS, CLAUDE]) {
      expect(await ask(model)).toMatchObject({
        status: 502,
        code: 'upstream_credential',
        message: refused(hint),
      });
      expect(record()).toMatchObject({ fault: 'deployment' });
    }
    expect(JSON.stringify(gateway.logged)).not.toMatch(/wJalrXUtn|t0ken-of/);
  });

  test.each<[said: string, type: string, hint: string]>([
    [
      "You don't have access to the model with the specified model ID.",
      'AccessDeniedException',
      'the account of AWS_ACCESS_KEY_ID has no access to this model',
    ],
    [
      'User: arn:aws:iam::1:user/x is not authorized to perform: bedrock:InvokeModel on resource: arn:aws:bedrock:x with an explicit deny in a service control policy',
      '',
      'the policies of AWS_ACCESS_KEY_ID do not allow this request',
    ],
    ['', 'AccessDeniedException', 'the policies of AWS_ACCESS_KEY_ID do not allow this request'],
    ["Credential should be scoped to a valid region, not 'eu-central-1'. ", '', 'check AWS_REGION'],
  ])('"%s" (%s): %s', async (message, type, hint) => {
    const { ask, record } = gatewayOf({}, 0, () =>
      Response.json({ message }, { status: 403, headers: { 'x-amzn-errortype': type } }),
    );
    expect(await ask(OSS)).toMatchObject({
      status: 502,
      code: 'upstream_credential',
      message: refused(hint),
    });
    expect(record()).toMatchObject({ fault: 'deployment' });
  });

  test.each([20, -20])(
    'a clock that is %d minutes off: corrected by AWS’s, once, for all later requests',
    async (minutes) => {
      const { aws, ask, gateway } = gatewayOf({}, minutes * 60_000);
      expect(await ask(OSS)).toMatchObject({ status: 200 });
      expect(aws.requests).toHaveLength(2);
      expect(await ask(CLAUDE)).toMatchObject({ status: 200 });
      expect(aws.requests).toHaveLength(3);
      expect(gateway.logged.filter(({ event }) => event === 'clock_corrected')).toMatchObject([
        { seconds: minutes * 60 },
      ]);
    },
  );

  test('the same with a role: STS’s time corrects it, and the session ends by AWS’s clock', async () => {
    const { aws, clock, ask } = gatewayOf({ AWS_ROLE_ARN: ROLE }, 20 * 60_000);
    expect(await ask(OSS)).toMatchObject({ status: 200 });
    expect(aws.sessionCalls).toBe(2);
    clock.advance(3_000_000);
    expect(await ask(OSS)).toMatchObject({ status: 200 });
    expect(aws.sessionCalls).toBe(2);
  });

  test('a clock that a correction does not help: told as what it is', async () => {
    const clock = new FakeClock();
    let reads = 0;
    const aws = new FakeAws({ now: () => clock.now() + ++reads * 20 * 60_000, answer });
    aws.identities.set(ID, { secret: SECRET });
    const gateway = new LimitedGateway(ENV, { fetch: aws.fetch, clock });
    const response = await gateway.post('/v1/chat/completions', 'x', {
      model: `bedrock/${OSS}`,
      messages: [{ role: 'user', content: 'x' }],
    });
    const text = await response.text();
    expect(text).toMatch(/the clock of this Worker is \d+ minutes behind AWS's/);
    expect(text).not.toContain('AWS_SECRET_ACCESS_KEY');
    expect(aws.requests).toHaveLength(2);
  });

  test('a refusal that quotes the request: no secret in error, log and record', async () => {
    const token = 'FwoGZXIvYXdzEXAMPLETOKEN==';
    const quote = ({ headers }: AwsRequest) =>
      Response.json(
        {
          message: `The Canonical String should have been 'POST x-amz-security-token:${headers.get('x-amz-security-token')} ${headers.get('authorization')}' ${SECRET} ${token}`,
        },
        { status: 400 },
      );
    const { aws, ask, gateway } = gatewayOf({ AWS_SESSION_TOKEN: token }, 0, quote);
    aws.identities.set(ID, { secret: SECRET, token });
    const { text } = await ask(OSS);
    const seen = text + JSON.stringify(gateway.logged);
    expect(seen).not.toContain(SECRET);
    expect(seen).not.toContain(token);
    expect(seen).not.toMatch(/Signature=[0-9a-f]{8}/);
  });
});
