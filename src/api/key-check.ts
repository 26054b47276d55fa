/** What keeps a new or changed key from ever being of use: an error where nothing here could, else a warning beside the key (K4). */
import { type Budget, readLimits, TOKENS } from '../auth/key-limits.ts';
import type { GatewayKey } from '../auth/keys.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import type { RequestContext } from '../http/context.ts';
import type { PriceTable } from '../metering/pricing/price.ts';
import { PROVIDERS } from '../providers/index.ts';
import { findAlias } from '../routing/targets.ts';
import { providerOf } from '../settings/aliases.ts';
import type { Settings } from '../settings/settings.ts';
import { globsOverlap } from '../shared/glob.ts';
import type { JsonObject } from '../shared/json.ts';
import { nearestName } from '../shared/nearest.ts';

interface KeyWarning {
  /** The field that it is about; null: the key as a whole. */
  readonly param: string | null;
  readonly message: string;
}

/** What a budget may be counted in: the currencies of the prices, those of most prices first, and tokens. */
export function budgetUnits(table: PriceTable): string[] {
  const byCurrency = Map.groupBy(table.flat(), ({ currency }) => currency);
  const currencies = [...byCurrency]
    .sort(([, a], [, b]) => b.length - a.length)
    .map(([currency]) => currency);
  return [...currencies, TOKENS];
}

/** The error for a budget in a currency in which nothing has a price: no request could be counted. */
export function budgetProblem(limits: JsonObject | null, table: PriceTable): ApiError | null {
  const budget = budgetOf(limits);
  const units = budgetUnits(table);
  if (budget === null || units.includes(budget.unit)) return null;
  const message = `No model has a price in ${budget.unit}, so nothing could be counted in it: a budget is in ${units.join(', ')}, or in the currency of prices that PRICES adds`;
  return apiError('invalid_request', message, 'budget');
}

function budgetOf(limits: JsonObject | null): Budget | null {
  const read = readLimits(limits ?? {});
  return read.kind === 'limits' ? read.limits.budget : null;
}

/** What may become right without a change of the key, such as a provider that is set up later. As a field of the answer, or nothing. */
export function keyWarnings(
  key: GatewayKey,
  { settings, arrivedAt }: Pick<RequestContext, 'settings' | 'arrivedAt'>,
  table: PriceTable,
): { readonly warnings?: readonly KeyWarning[] } {
  const { models, expires_at, limits } = key;
  const warnings: KeyWarning[] = [];
  if (settings.auth !== 'keys')
    warnings.push({
      param: null,
      message: `AUTH=${settings.auth} takes no gateway keys: this one is not used`,
    });
  if (expires_at !== null && Date.parse(expires_at) <= arrivedAt)
    warnings.push({ param: 'expires_at', message: `This key expired at ${expires_at}` });
  const problems = (models ?? []).map((glob) => globProblem(glob, settings));
  for (const message of problems) if (message !== null) warnings.push({ param: 'models', message });
  const budget = budgetOf(limits);
  const isReachable = models === null || problems.includes(null);
  if (budget?.mode === 'hard') {
    if (budget.amount === 0)
      warnings.push({ param: 'budget', message: 'A hard budget of 0 refuses every request' });
    else if (isReachable && budget.unit !== TOKENS && !isPriced(models, budget.unit, settings, table)) {
      const message = `No model that this key may use has a price in ${budget.unit}: a hard budget in it refuses every request`;
      warnings.push({ param: 'budget', message });
    }
  }
  return warnings.length === 0 ? {} : { warnings };
}

/** Why a glob fits no address that a request can have here; null: it fits some. */
function globProblem(glob: string, { providers, aliases }: Settings): string | null {
  if ([...providers.keys()].some((id) => globsOverlap(glob, `${id}/*`))) return null;
  const alias = findAlias(aliases, glob, providers);
  if (alias !== undefined) {
    const addresses = alias.steps.map(({ address }) => address).join(', ');
    return `${glob} is an alias, and models are compared with what it stands for: name ${addresses}`;
  }
  const id = providerOf(glob);
  if (id === '') return `${glob} matches no model: write <provider>/<model>, or <provider>/*`;
  if (PROVIDERS.some((provider) => provider.id === id))
    return `${glob} matches no model: the provider ${id} is not set up in this deployment`;
  const known = [...providers.keys(), ...PROVIDERS.map((provider) => provider.id)];
  const nearest = nearestName(id, known);
  const hint =
    nearest === undefined
      ? `Providers here: ${[...providers.keys()].join(', ') || 'none yet'}`
      : `Did you mean ${nearest}${glob.slice(id.length)}?`;
  return `${glob} matches no model: there is no provider ${id}. ${hint}`;
}

function isPriced(
  models: readonly string[] | null,
  currency: string,
  { providers }: Settings,
  table: PriceTable,
): boolean {
  const prices = table.flat().filter((price) => price.currency === currency);
  return [...providers].some(([id, { priceIds }]) =>
    prices.some(
      (price) =>
        priceIds.includes(price.provider) &&
        price.models.some((name) => (models ?? ['*']).some((glob) => globsOverlap(glob, `${id}/${name}`))),
    ),
  );
}
