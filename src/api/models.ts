/** `GET /v1/models`: what this deployment can reach, each model by the address that asks for it, in a list for both SDKs (I6). */
import { type Caller, isAdmin, mayUse } from '../auth/caller.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import type { RequestContext } from '../http/context.ts';
import { ADMIN, identifyCaller } from '../http/identify.ts';
import { errorResponse, jsonResponse } from '../http/respond.ts';
import { isoTime } from '../metering/time.ts';
import { isGlob } from '../routing/targets.ts';
import { didYouMean } from '../shared/nearest.ts';
import { ok, type Result } from '../shared/result.ts';
import type { Model } from './model-lists.ts';

export async function handleModels(request: Request, context: RequestContext): Promise<Response> {
  const found = await findModels(request, context);
  if (found.kind === 'error') return errorResponse(found.error);
  const data = found.models.map(viewOf);
  const [first_id, last_id] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
  const { notice } = found;
  return jsonResponse({
    object: 'list',
    data,
    has_more: false,
    first_id,
    last_id,
    ...(notice !== null && { notice }),
  });
}

/** `GET /v1/models/<id>`: one of them (Q12). */
export async function handleModel(request: Request, context: RequestContext, id: string): Promise<Response> {
  const found = await findModels(request, context);
  if (found.kind === 'error') return errorResponse(found.error);
  const model = found.models.find((known) => known.id === id);
  if (model !== undefined) return jsonResponse(viewOf(model));
  const hint = didYouMean(
    id,
    found.models.map((known) => known.id),
  );
  const message = `There is no such model${hint || ': GET /v1/models lists them'}`;
  return errorResponse(apiError('model_not_found', message, 'model'));
}

/** OpenAI's keys, then Anthropic's; whose clients take no notice of the other's. */
function viewOf(model: Model) {
  const { id, created } = model;
  return { ...model, type: 'model', display_name: id, created_at: isoTime(created * 1000) };
}

type ModelsResult =
  /** `notice` says why there are none; null where there are some. SDKs ignore the field. */
  | { readonly kind: 'models'; readonly models: readonly Model[]; readonly notice: string | null }
  | { readonly kind: 'error'; readonly error: ApiError };

/** Providers are asked side by side; one that fails or takes too long is left out, and logged. */
async function findModels(request: Request, context: RequestContext): Promise<ModelsResult> {
  const { settings, ports } = context;
  const identified = await identifyReader(request, context);
  if (identified.kind === 'error') return identified;
  const caller = identified.value;
  // A caller's own key belongs to one provider, and no other may see it: only the default one can be asked.
  const asked = [...settings.providers.values()].filter(
    ({ provider }) => caller.credential === null || provider.id === settings.defaultProvider,
  );
  const failures: string[] = [];
  const lists = await Promise.all(
    asked.map(async (configured) => {
      const list = await context.modelLists.list(configured, caller.credential, context.leaseMemory);
      if (list.kind === 'models') return list.models;
      const { id } = configured.provider;
      const { cause, reason } = list;
      const settings = [configured.keySetting, configured.urlSetting].filter((setting) => setting !== null);
      ports.log({ event: 'models_unavailable', provider: id, cause, check: settings.join(', ') });
      failures.push(`${id} ${reason}`);
      return [];
    }),
  );
  const aliases = settings.aliases.filter(
    (alias) => !isGlob(alias) && alias.steps.some(({ address }) => mayUse(caller, address)),
  );
  const models = [
    ...aliases.map(({ name }): Model => ({ id: name, object: 'model', created: 0, owned_by: 'weir' })),
    ...lists.flat().filter((model) => mayUse(caller, model.id)),
  ];
  if (models.length > 0) return { kind: 'models', models, notice: null };
  const notice = whyNone(asked.length, lists.flat().length, failures);
  ports.log({ event: 'models_empty', notice });
  return { kind: 'models', models, notice };
}

/** Why a list of models is empty. */
function whyNone(asked: number, listed: number, failures: readonly string[]): string {
  if (asked === 0)
    return 'No provider is asked: its operator has set no key, or AUTH=passthrough without DEFAULT_PROVIDER';
  if (listed > 0) return 'This key may use none of the models';
  return failures.length > 0
    ? `No provider listed its models: ${failures.join(', ')}`
    : 'The providers listed no models';
}

/** Who may read the list: any caller, and the bearer of the admin token, who sees all of it. */
async function identifyReader(request: Request, context: RequestContext): Promise<Result<Caller, ApiError>> {
  const { auth, adminToken } = context.settings;
  if (auth !== 'open' && (await isAdmin(adminToken, request.headers))) {
    context.known.keyId = ADMIN;
    return ok({ keyId: ADMIN, models: null, credential: null, key: null });
  }
  return identifyCaller(request, context);
}
