/** Teams with their budgets as bars, and the page of one: what is left of its limits, its keys, top-ups and changes. */
import type { Key, Team, TeamStatus } from '../../api/types.ts';
import { count, NONE } from '../../format/numbers.ts';
import { date } from '../../format/times.ts';
import { type Action, Menu } from '../../parts/menu.tsx';
import { Trouble } from '../../parts/problem.tsx';
import { type Column, Facts, Table } from '../../parts/table.tsx';
import { useLoad } from '../../state/load.ts';
import { goTo, linkTo } from '../../state/route.ts';
import { useSession } from '../../state/session.ts';
import { allLimitsInWords, limitFacts, TopUps } from './budget.tsx';
import { budgetColumn, LIMITS, nameColumn } from './columns.tsx';
import { Actions, Changes, People, Spending } from './key-page.tsx';
import { Latest } from './latest.tsx';

const PAGE = [20, 50] as const;
/** Of teams above the keys. */
const TEAMS_PAGE = [5, 50] as const;

interface TeamsProps {
  readonly teams: readonly Team[];
  readonly keys: readonly Key[];
  readonly actionsOf: (team: Team) => readonly Action[];
  readonly reloads: number;
}

export function Teams({ teams, keys, actionsOf, reloads }: TeamsProps) {
  if (teams.length === 0) return null;
  const byTeam = Map.groupBy(keys, ({ team }) => team);
  const columns: readonly Column<Team>[] = [
    nameColumn('Team', (team) => linkTo('keys', {}, { team })),
    { head: 'Keys', look: 'num', isMain: true, unit: 'keys', value: ({ id }) => byTeam.get(id)?.length ?? 0 },
    budgetColumn('/v1/admin/teams', reloads),
    LIMITS,
    { head: 'Created', value: ({ created_at }) => created_at, cell: ({ created_at }) => date(created_at) },
    {
      head: 'Actions',
      look: 'actions',
      cell: (team) => (
        <Menu name={`Actions of ${team.name}`} actions={actionsOf(team)}>
          ⋯
        </Menu>
      ),
    },
  ];
  return (
    <Table
      title
      label="Teams"
      columns={columns}
      items={teams}
      page={TEAMS_PAGE}
      idOf={({ id }) => id}
      searched={({ id, name }) => `${id}\n${name}`}
      onOpen={({ id }) => goTo('keys', {}, { team: id })}
      unfolds
    />
  );
}

interface TeamPageProps {
  readonly of: Team;
  readonly keys: readonly Key[];
  readonly actions: readonly Action[];
  readonly reloads: number;
}

export function TeamPage({ of: team, keys, actions, reloads }: TeamPageProps) {
  const { api } = useSession();
  const { id, name, models, created_at, per_key, per_user, people, groups } = team;
  const standing = useLoad<TeamStatus>(
    (signal) => api.get(`/v1/admin/teams/${id}`, {}, signal),
    [api, id, JSON.stringify(team)],
    reloads,
  );
  const columns: readonly Column<Key>[] = [
    nameColumn('Name', (id) => linkTo('keys', {}, { id })),
    budgetColumn('/admin/keys', reloads),
    LIMITS,
  ];
  return (
    <>
      <p>
        <a href={linkTo('keys', {})}>All keys</a>
      </p>
      <h2 class="title">
        <bdi>{name}</bdi>
      </h2>
      <Actions of={actions} />
      <Trouble of={standing} />
      <div class="beside">
        <Facts
          facts={[
            ['Id', <bdi class="code">{id}</bdi>],
            ['Models', <bdi>{models?.join(', ') ?? 'all'}</bdi>],
            ['Keys', count(standing.value?.keys ?? keys.length)],
            people !== undefined && ['People', <bdi>{people.join(', ')}</bdi>],
            groups !== undefined && ['Groups', <bdi>{groups.join(', ')}</bdi>],
            team.default === true && ['Default', 'for people whom no team lists'],
            ...(standing.value === null ? [] : limitFacts(standing.value, team.budget)),
            per_key ? ['Each key', allLimitsInWords(per_key)] : false,
            per_user !== undefined && ['Each user', allLimitsInWords(per_user)],
            ['Created', date(created_at)],
          ]}
        />
        <Spending of={{ team: id }} reloads={reloads} />
      </div>
      {standing.value !== null && <TopUps of={standing.value} />}
      {keys.length === 0 ? (
        <p class="hint foot">{standing.value === null ? NONE : 'It has no keys yet.'}</p>
      ) : (
        <Table
          title
          label="Keys of the team"
          columns={columns}
          items={keys}
          page={PAGE}
          idOf={(key) => key.id}
          onOpen={(key) => goTo('keys', {}, { id: key.id })}
          unfolds
        />
      )}
      <People of={{ team: id }} reloads={reloads} />
      <Changes of={{ team: id }} reloads={reloads} />
      <Latest filters={{ team: id }} />
    </>
  );
}
