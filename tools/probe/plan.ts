/** Plans the probe's requests: each body as an OpenAI client sends it, and as Weir's rules translate it. */
import { isDeepStrictEqual } from 'node:util';
import type { Provider, Route } from '../../src/providers/provider.ts';
import type { RequestRules } from '../../src/request-translation/rules.ts';
import type { JsonObject } from '../../src/shared/json.ts';
import { readRecordedRequests } from '../../test/request-translation/recorded-requests.ts';
import { writeRequest } from '../../test/request-translation/write-request.ts';
import { FIELD_BODIES, type ProbeBody } from './bodies.ts';
import { MESSAGE_BODIES } from './message-bodies.ts';

export interface Target {
  readonly provider: Provider;
  readonly baseUrl: string;
  /** Empty for a server without keys. */
  readonly key: string;
  readonly model: string;
  /** Null: bodies with a `prompt` are skipped. */
  readonly fimModel: string | null;
  readonly timeoutMs: number;
}

export interface Planned {
  readonly name: string;
  readonly route: Route;
  readonly rules: RequestRules;
  readonly raw: JsonObject;
  readonly rewritten: ReturnType<typeof writeRequest>;
  /** Both are the same, so one request is enough. */
  readonly isSame: boolean;
  readonly effect: ProbeBody['effect'];
}

/** Enough for a word, a tool call and a little thinking. */
const MAX_TOKENS = 256;
const LIMITS = ['max_tokens', 'max_completion_tokens'] as const;

/** The recorded requests that this provider accepted, except those of agents, which belong to another account. */
function recordedBodies(id: string): ProbeBody[] {
  const taken = readRecordedRequests().filter(
    ({ provider, route, refusal }) => provider.id === id && route !== 'agents' && refusal === null,
  );
  return taken.map(({ name, route, body }) => ({
    name: `recorded/${name.replace(/\.json$/, '')}`,
    route,
    body,
  }));
}

export function bodiesFor(id: string): ProbeBody[] {
  return [...FIELD_BODIES, ...MESSAGE_BODIES, ...recordedBodies(id)];
}

/** The bodies that this provider has an endpoint and a model for. */
export function planOf(target: Target, bodies: readonly ProbeBody[]): Planned[] {
  return bodies.flatMap((body) => planned(target, body) ?? []);
}

function planned(target: Target, { name, route, body, effect }: ProbeBody): Planned | undefined {
  const { provider } = target;
  const form = provider.endpoints[route]?.request;
  const model = route === 'chat' ? target.model : target.fimModel;
  if (form?.kind !== 'chat' || model === null) return undefined;
  const { rules } = form;
  const raw = { ...withLimit(body, rules), model };
  const options = {
    model,
    provider: provider.name,
    providerId: provider.id,
    unsupported: 'auto',
    promptCache: 'auto',
  } as const;
  const rewritten = writeRequest(form, { fields: raw, turns: null }, options);
  const isSame = rewritten.kind === 'ok' && isDeepStrictEqual(raw, rewritten.value.body);
  return { name, route, rules, raw, rewritten, isSame, effect };
}

/** Sets the output limit under the name in the provider's table, so that only the tested field differs. */
function withLimit(body: JsonObject, { fields }: RequestRules): JsonObject {
  const own = LIMITS.filter((name) => body[name] !== undefined);
  const rule = fields.max_tokens;
  const names = own.length > 0 ? own : [rule?.kind === 'renamed' ? rule.to : 'max_tokens'];
  const limits = names.map((name) => [name, Math.min(Number(body[name] ?? MAX_TOKENS), MAX_TOKENS)] as const);
  return { ...body, ...Object.fromEntries(limits) };
}

/** The number of requests in the plan, without retries after a 429. */
export function countRequests(plan: readonly Planned[]): number {
  const second = plan.filter(({ isSame, rewritten }) => !isSame && rewritten.kind === 'ok');
  return plan.length + second.length;
}
