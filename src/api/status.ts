/** `GET /admin/status`: what runs, how its providers do, and which circuits are open; `GET /health` says the version. */

import { forAdmin } from '../http/admin.ts';
import type { RequestContext } from '../http/context.ts';
import { jsonResponse } from '../http/respond.ts';
import type { ListedRecord } from '../metering/ledger.ts';
import { findPrice } from '../metering/pricing/cost.ts';
import type { Price, PriceTable } from '../metering/pricing/price.ts';
import { callsOf, faultOfProviderCall, type ProviderCall } from '../metering/provider-calls.ts';
import { DAY_MS, firstIdAt, HOUR_MS, isoTime } from '../metering/time.ts';
import { PROVIDERS } from '../providers/index.ts';
import { providerOf } from '../settings/aliases.ts';
import { type ConfiguredProvider, missingSecret } from '../settings/configured-provider.ts';
import { withoutCredentials } from '../settings/reader.ts';
import type { Settings } from '../settings/settings.ts';
import type { RunningVersion } from '../settings/version.ts';
import { STATUS_PARAMS } from './parameters.ts';
import type {
  AliasPrice,
  AliasStatus,
  DeploymentView,
  IsolateView,
  LastHour,
  ProviderFailure,
  ProviderStatus,
} from './status-view.ts';

/** The newest records of the last hour from which rates and times are computed. */
const MAX_SAMPLED = 1000;
/** The newest failed records of the last day in which each provider's last error is looked for. */
const MAX_FAILED = 200;
/** Responses that say that the request is wrong, which is no failure of the provider. */
const REQUEST_FAULTS: readonly (number | null)[] = [400, 404, 413, 422];

/** `GET /health`. The commit and the version's id are absent where they are not known. */
export function healthResponse({ version, commit, version_id }: RunningVersion): Response {
  return jsonResponse({
    status: 'ok',
    version,
    ...(commit !== null && { commit }),
    ...(version_id !== null && { version_id }),
  });
}

/** `GET /admin/status`. With `only=isolate` it reads no ledger, so that it can be asked often. */
export const handleStatus = forAdmin(async (_request, context, _id, { only }) => {
  const shown = { object: 'status', time: isoTime(context.arrivedAt), ...isolateView(context) };
  return jsonResponse(only === null ? { ...shown, ...(await deploymentView(context)) } : shown);
}, STATUS_PARAMS);

/** What each isolate has of its own. The next request may reach another isolate. */
function isolateView({ upstreams: { circuits }, inFlight, ports }: RequestContext): IsolateView {
  const scope = 'isolate';
  const open = circuits.openCircuits(ports.clock.now()).map(({ target, caller, failures, openUntil }) => {
    const [route = '', ...model] = target.split(' ');
    return { route, model: model.join(' '), key_id: caller, failures, open_until: isoTime(openUntil) };
  });
  return { in_flight: { scope, requests: inFlight.requests }, circuits: { scope, open } };
}

async function deploymentView(context: RequestContext): Promise<DeploymentView> {
  const { settings, arrivedAt, prices } = context;
  const {
    version,
    commit,
    version_id,
    uploaded_at,
    features,
    settings: inForce,
  } = context.deployment.running;
  const [hour, day, table, ledger] = await Promise.all([
    recordsSince(context, HOUR_MS, null, MAX_SAMPLED),
    recordsSince(context, DAY_MS, ['failed', 'timed_out'], MAX_FAILED),
    prices.load(),
    ledgerView(context),
  ]);
  const calls = hour.records.flatMap(callsOf);
  return {
    ...{ version, commit, version_id, uploaded_at, features },
    settings: inForce,
    providers: providersOf(settings).map((provider) => ({
      ...provider,
      last_hour: lastHour(provider.id, calls, hour.records),
    })),
    aliases: aliasesOf(settings, table, arrivedAt),
    errors: lastErrors([...calls, ...day.records.flatMap(callsOf)]),
    ledger: {
      ...ledger,
      ...lagOf(context, hour.records),
      sampled_records: hour.records.length,
      problem: hour.problem ?? day.problem,
    },
  };
}

interface Recent {
  readonly records: readonly ListedRecord[];
  /** Why there are none; null: they were read. */
  readonly problem: string | null;
}

/** The newest records of the last `ms`. A ledger that cannot answer leaves the rest of the status. */
async function recordsSince(
  { ledger, arrivedAt }: RequestContext,
  ms: number,
  statuses: readonly string[] | null,
  limit: number,
): Promise<Recent> {
  const bounds = { fromId: firstIdAt(arrivedAt - ms), beforeId: firstIdAt(arrivedAt + 1) };
  try {
    const page = await ledger.list({ ...bounds, keyId: null, model: null, statuses, limit });
    return page.kind === 'ok'
      ? { records: page.value.records, problem: null }
      : { records: [], problem: page.error.message };
  } catch (error) {
    return { records: [], problem: `The ledger did not answer: ${String(error)}` };
  }
}

async function ledgerView({ delivery }: RequestContext) {
  try {
    return await delivery.status();
  } catch (error) {
    return {
      ...{ store: null, has_queue: null, waiting_records: null, has_archive: null, full_keys: [] },
      reason: String(error),
    };
  }
}

/** How far queries are behind what this isolate has delivered. `lag_ms` is null while it has delivered nothing of the last hour. */
function lagOf({ delivery, arrivedAt }: RequestContext, records: readonly ListedRecord[]) {
  const { last, lost } = delivery.byIsolate;
  const newest = records[0] ?? null;
  const isRecent = last !== null && last.requestId >= firstIdAt(arrivedAt - HOUR_MS);
  const isVisible = isRecent && newest !== null && newest.request_id >= last.requestId;
  return {
    newest_record: newest?.time ?? null,
    lag_ms: !isRecent ? null : isVisible ? 0 : Math.max(0, arrivedAt - Date.parse(last.ended)),
    lost_by_this_isolate: lost,
  };
}

function lastHour(id: string, calls: readonly ProviderCall[], records: readonly ListedRecord[]): LastHour {
  const providerCalls = calls.filter(({ attempt }) => attempt.provider === id);
  const failed = providerCalls.filter(
    ({ attempt: { error_code, status } }) => error_code !== null && !REQUEST_FAULTS.includes(status),
  );
  const retried = providerCalls.filter(({ isRetried }) => isRetried);
  const times = records
    .flatMap(({ provider, first_token_ms }) =>
      provider === id && first_token_ms !== null ? first_token_ms : [],
    )
    .sort((a, b) => a - b);
  return {
    calls: providerCalls.length,
    failed_calls: failed.length,
    error_rate: rateOf(failed.length, providerCalls.length),
    retry_rate: rateOf(retried.length, providerCalls.length),
    median_first_token_ms: percentile(times, 0.5),
    p95_first_token_ms: percentile(times, 0.95),
    models: [...new Set(providerCalls.map(({ attempt }) => attempt.model))],
  };
}

/** With 4 decimals; null without calls. */
function rateOf(part: number, all: number): number | null {
  return all === 0 ? null : Math.round((part / all) * 10_000) / 10_000;
}

function percentile(sorted: readonly number[], share: number): number | null {
  return sorted[Math.ceil(sorted.length * share) - 1] ?? null;
}

/** The last error of each provider and fault, the latest first, with what the provider or Weir said; where nothing, with the cause. */
function lastErrors(calls: readonly ProviderCall[]): readonly ProviderFailure[] {
  const failed = calls.filter(({ attempt }) => attempt.error_code !== null);
  failed.sort((a, b) => (a.record.request_id > b.record.request_id ? -1 : 1));
  const byFault = Map.groupBy(failed, (call) => `${call.attempt.provider} ${faultOfProviderCall(call)}`);
  return [...byFault.values()].flatMap(([call]) => {
    if (call === undefined) return [];
    const { provider, model, status, error_code, message, cause } = call.attempt;
    const { request_id, time } = call.record;
    const said = { code: error_code, message: message ?? cause ?? null };
    return { provider, model, fault: faultOfProviderCall(call), time, status, ...said, request_id };
  });
}

/** The providers that are set up, and the built-in ones that are not. */
function providersOf({ providers, auth }: Settings): readonly Omit<ProviderStatus, 'last_hour'>[] {
  const configuredProviders = [...providers.values()].map((configured) => {
    const { provider, baseUrl, keySetting } = configured;
    const shown = { id: provider.id, is_set_up: true, credential: credentialOf(configured, auth) };
    return { ...shown, setting: keySetting, base_url: withoutCredentials(baseUrl) };
  });
  const others = PROVIDERS.filter(({ id }) => !providers.has(id)).map(({ id, apiKeySettings: [setting] }) => {
    return { id, is_set_up: false, credential: 'absent', setting, base_url: null };
  });
  return [...configuredProviders, ...others];
}

/** `unreadable`: Secrets Store did not return it. `caller`: callers send their own. A header may also hold a key. */
function credentialOf(configured: ConfiguredProvider, auth: Settings['auth']) {
  const { apiKey, auth: made, headers } = configured;
  if (missingSecret(configured, auth === 'passthrough') !== null) return 'unreadable';
  if (auth === 'passthrough') return 'caller';
  return apiKey === '' && made === null && Object.keys(headers).length === 0 ? 'absent' : 'present';
}

/** The targets of each alias with their current prices; null where no price is known, as for a target with `*`. */
function aliasesOf(
  { aliases, providers }: Settings,
  table: PriceTable,
  nowMs: number,
): readonly AliasStatus[] {
  return aliases.map(({ name, steps }) => ({
    name,
    targets: steps.map(({ address, weight, timeoutMs }) => {
      const id = providerOf(address);
      const model = address.slice(id.length + 1);
      const found = findPrice(table, providers.get(id)?.priceIds ?? [], model, nowMs);
      return {
        model: address,
        weight,
        timeout_seconds: timeoutMs === null ? null : timeoutMs / 1000,
        price: found && ratesOf(found),
      };
    }),
  }));
}

/** A price without what it is for. */
function ratesOf({ provider: _, models: __, ...rates }: Price): AliasPrice {
  return rates;
}
