/** The view of what runs: version, providers with their last errors, aliases, open circuits, the ledger, and the settings in force. */
import type {
  AliasStatus,
  CircuitView,
  Deployment,
  FullKey,
  ProviderFailure,
  ProviderStatus,
  SettingView,
} from '../../api/types.ts';
import { count, milliseconds, NONE, rates, share } from '../../format/numbers.ts';
import { exactTime, moment, timeOfDay } from '../../format/times.ts';
import { Refresh } from '../../parts/controls.tsx';
import { Name } from '../../parts/name.tsx';
import { Trouble } from '../../parts/problem.tsx';
import { type Column, Facts, numberColumn, Table } from '../../parts/table.tsx';
import { useLoad } from '../../state/load.ts';
import { linkTo, type Params } from '../../state/route.ts';
import { useKeyNames, useSession } from '../../state/session.ts';

const PAGE = [50, 200] as const;

export function Health({ params }: { params: Params }) {
  const { api } = useSession();
  const loaded = useLoad<Deployment>((signal) => api.get('/v1/admin/status', {}, signal), [api]);
  const { value, isLoading, reload } = loaded;
  return (
    <>
      <div class="bar">
        <Refresh view="health" params={params} onRefresh={reload} />
      </div>
      <Trouble of={loaded} />
      {isLoading && value === null && <p class="hint">Loading …</p>}
      {value !== null && <Shown of={value} />}
    </>
  );
}

function Shown({ of: deployment }: { of: Deployment }) {
  const { nameOf } = useKeyNames();
  const { aliases, circuits, errors, ledger, providers, settings } = deployment;
  const setUp = providers.filter(({ is_set_up }) => is_set_up);
  const others = providers.filter(({ is_set_up }) => !is_set_up);
  return (
    <>
      <Facts
        facts={[
          ['Version', deployment.version],
          deployment.commit !== null && ['Commit', <span class="code">{deployment.commit}</span>],
          deployment.version_id !== null && [
            'Worker version',
            <span class="code">{deployment.version_id}</span>,
          ],
          deployment.uploaded_at !== null && ['Uploaded', exactTime(deployment.uploaded_at)],
          ['Features', deployment.features.join(', ') || 'none'],
        ]}
      />
      <h2>Providers</h2>
      <p class="hint">
        Rates and times of the newest {count(ledger.sampled_records, 'request')} of the last hour.
      </p>
      {ledger.problem !== null && (
        <p class="problem" role="alert">
          <bdi>{ledger.problem}</bdi>
        </p>
      )}
      {setUp.length > 0 && (
        <Table
          label="Providers"
          columns={providerColumns(errors)}
          items={setUp}
          idOf={({ id }) => id}
          sortedBy="-Calls"
        />
      )}
      {others.length > 0 && (
        <p class="hint">Not set up: {others.map(({ id, setting }) => `${id} (${setting})`).join(', ')}.</p>
      )}
      <h2>Open circuits</h2>
      <p class="hint">
        Of the isolate that answered. Each isolate has its own circuits, and the next request may reach
        another one.
      </p>
      {circuits.open.length === 0 ? (
        <p>None.</p>
      ) : (
        <Table
          label="Open circuits"
          columns={circuitColumns(nameOf)}
          items={circuits.open}
          idOf={({ route, model }) => `${route} ${model}`}
          page={PAGE}
        />
      )}
      <h2>Ledger</h2>
      <Facts
        facts={[
          ['Store', `${ledger.store ?? 'no answer'}${ledger.has_queue ? ', through a Queue' : ''}`],
          ['Newest record', ledger.newest_record === null ? NONE : exactTime(ledger.newest_record)],
          ['Behind this isolate', ledger.lag_ms === null ? NONE : milliseconds(ledger.lag_ms)],
          ['Records that wait', count(ledger.waiting_records)],
          ledger.store === 'object' && ['Archive', ledger.has_archive ? 'R2' : 'none'],
          ['Lost by this isolate', count(ledger.lost_by_this_isolate)],
        ]}
      />
      <FullKeys of={ledger.full_keys} hasArchive={ledger.has_archive === true} nameOf={nameOf} />
      {aliases.length > 0 && (
        <>
          <h2>Aliases</h2>
          <Table label="Aliases" columns={ALIASES} items={aliases} idOf={({ name }) => name} page={PAGE} />
        </>
      )}
      <h2>Settings in force</h2>
      <Table label="Settings" columns={SETTINGS} items={settings} idOf={({ setting }) => setting} />
    </>
  );
}

/** What a full ledger object has deleted, or cannot archive. */
function FullKeys({
  of: keys,
  hasArchive,
  nameOf,
}: {
  of: readonly FullKey[];
  hasArchive: boolean;
  nameOf: (id: string) => string;
}) {
  if (keys.length === 0) return null;
  const isFailing = keys.some(({ archive_failing_since }) => archive_failing_since !== null);
  return (
    <>
      <p class="problem" role="alert">
        {isFailing
          ? 'Records cannot be archived: check the bucket WEIR_ARCHIVE. They stay in their objects as long as these have room.'
          : 'Full ledger objects have deleted their oldest records. Sums and budgets are not affected.'}{' '}
        {!hasArchive && 'Bind an R2 bucket as WEIR_ARCHIVE, so that they are kept.'}
      </p>
      <Table label="Full ledgers" columns={fullColumns(nameOf)} items={keys} idOf={({ key_id }) => key_id} />
    </>
  );
}

function fullColumns(nameOf: (id: string) => string): readonly Column<FullKey>[] {
  return [
    {
      head: 'Key',
      look: 'name',
      value: ({ key_id }) => nameOf(key_id),
      cell: ({ key_id }) => <Name text={nameOf(key_id)} title={key_id} />,
    },
    numberColumn('Deleted records', ({ deleted_records }) => deleted_records),
    {
      head: 'From before',
      value: ({ deleted_before }) => (deleted_before === null ? NONE : exactTime(deleted_before)),
    },
    {
      head: 'Archive fails since',
      value: ({ archive_failing_since }) =>
        archive_failing_since === null ? NONE : exactTime(archive_failing_since),
    },
    { head: 'Reason', look: 'limits', value: ({ reason }) => reason ?? NONE },
  ];
}

const CREDENTIALS: Readonly<Record<string, string>> = {
  present: 'present',
  absent: 'none',
  unreadable: 'not readable in Secrets Store',
  caller: "the caller's own",
};

function providerColumns(errors: readonly ProviderFailure[]): readonly Column<ProviderStatus>[] {
  const errorsOf = ({ id }: ProviderStatus) => errors.filter(({ provider }) => provider === id);
  return [
    {
      head: 'Provider',
      look: 'name',
      isMain: true,
      value: ({ id }) => id,
      cell: ({ id, base_url }) => <Name text={id} title={base_url ?? id} />,
    },
    { head: 'Credential', value: ({ credential }) => CREDENTIALS[credential] ?? credential },
    {
      ...numberColumn<ProviderStatus>('Calls', ({ last_hour }) => last_hour.calls),
      isMain: true,
      unit: 'calls',
    },
    numberColumn('Failed', ({ last_hour }) => last_hour.error_rate, share),
    numberColumn('Retried', ({ last_hour }) => last_hour.retry_rate, share),
    numberColumn('First token', ({ last_hour }) => last_hour.median_first_token_ms, milliseconds),
    numberColumn('Slowest 5%', ({ last_hour }) => last_hour.p95_first_token_ms, milliseconds),
    { head: 'Models', look: 'name', value: ({ last_hour }) => last_hour.models.join(', ') || NONE },
    {
      head: 'Last error',
      look: 'limits',
      isMain: true,
      value: (provider) => errorsOf(provider)[0]?.time,
      cell: (provider) => <LastErrors of={errorsOf(provider)} />,
    },
  ];
}

/** The last one of each fault, so that none hides another that asks for another act. */
function LastErrors({ of: errors }: { of: readonly ProviderFailure[] }) {
  if (errors.length === 0) return <span class="hint">no error in 24 h</span>;
  return (
    <>
      {errors.map((error) => (
        <p key={error.request_id}>
          <LastError of={error} />
        </p>
      ))}
    </>
  );
}

function LastError({ of: error }: { of: ProviderFailure }) {
  const { code, message, provider, status, time } = error;
  return (
    <a href={linkTo('requests', { id: error.request_id })} title={`${provider}/${error.model}`}>
      {moment(time)} <bdi class="code">{status === null ? code : `${status} ${code}`}</bdi>{' '}
      {message !== null && <bdi>{message}</bdi>}
    </a>
  );
}

function circuitColumns(nameOf: (id: string) => string): readonly Column<CircuitView>[] {
  return [
    { head: 'Model', look: 'name', value: ({ model }) => model, cell: ({ model }) => <Name text={model} /> },
    { head: 'Route', value: ({ route }) => route },
    { head: 'For', look: 'name', value: ({ key_id }) => (key_id === null ? 'every key' : nameOf(key_id)) },
    numberColumn('Failures', ({ failures }) => failures),
    {
      head: 'Open until',
      value: ({ open_until }) => open_until,
      cell: ({ open_until }) => timeOfDay(Date.parse(open_until)),
    },
  ];
}

const ALIASES: readonly Column<AliasStatus>[] = [
  { head: 'Alias', look: 'name', value: ({ name }) => name, cell: ({ name }) => <Name text={name} /> },
  {
    head: 'Targets, price of a million tokens',
    look: 'limits',
    value: ({ targets }) => targets.map(({ model }) => model).join(', '),
    cell: ({ targets }) => (
      <ul>
        {targets.map(({ model, weight, price }) => (
          <li key={model}>
            <bdi>{model}</bdi>
            {weight > 0 && ` (weight ${weight})`}{' '}
            <span class="hint">{price === null ? 'no price is known' : rates(price)}</span>
          </li>
        ))}
      </ul>
    ),
  },
];

const SOURCES: Readonly<Record<string, string>> = { secrets_store: 'Secrets Store' };

const SETTINGS: readonly Column<SettingView>[] = [
  {
    head: 'Setting',
    value: ({ setting }) => setting,
    cell: ({ setting }) => <span class="code">{setting}</span>,
  },
  {
    head: 'Value',
    look: 'limits',
    value: ({ value }) => value ?? 'set',
    cell: ({ value }) => (value === null ? <span class="hint">set, not shown</span> : <bdi>{value}</bdi>),
  },
  { head: 'From', value: ({ source }) => SOURCES[source] ?? source },
];
