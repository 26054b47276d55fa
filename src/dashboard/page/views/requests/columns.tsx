/** The columns of the list of requests. */
import type { UsageRecord } from '../../api/types.ts';
import { cacheAdvice, cacheTitle, isBreak } from '../../format/caches.ts';
import { statusWords } from '../../format/endings.ts';
import { count, milliseconds, money, NONE, share } from '../../format/numbers.ts';
import { moment } from '../../format/times.ts';
import { isoTime, zoneName } from '../../format/zone.ts';
import { Name } from '../../parts/name.tsx';
import { type Column, numberColumn } from '../../parts/table.tsx';
import { linkTo, type Params } from '../../state/route.ts';
import type { KeyNames } from '../../state/session.ts';
import { cachedOf, servedBy, targetColours } from './session.tsx';

/** The values of a filter that select a record. */
export function valuesOf(
  { asked, provider, user, session, app, fault, error, tags = {} }: UsageRecord,
  name: string,
): string[] {
  if (name === 'tag') return Object.entries(tags).map(([tag, value]) => `${tag}:${value}`);
  const { [name]: value }: Readonly<Record<string, string | null>> = {
    model: asked,
    provider,
    user,
    session,
    app,
    fault,
    error,
  };
  return value ? [value] : [];
}

export function columnsOf(
  params: Params,
  names: KeyNames,
  isAdmin: boolean,
  records: readonly UsageRecord[],
): readonly Column<UsageRecord>[] {
  const number = numberColumn<UsageRecord>;
  const keyColumn: Column<UsageRecord> = {
    head: 'Key',
    look: 'name',
    value: ({ key_id }) => names.nameOf(key_id),
    cell: ({ key_id }) => <Name title={key_id} text={names.nameOf(key_id)} />,
  };
  const colours = params.session ? targetColours(records) : null;
  const hasUsers = records.some(({ user }) => user);
  const facts: readonly Column<UsageRecord>[] = [
    {
      head: 'User',
      look: hasUsers ? 'name' : 'csv',
      value: ({ user }) => user,
      cell: ({ user }) => (user ? <Name text={user} /> : NONE),
    },
    { head: 'Session', look: 'csv', value: ({ session }) => session },
    { head: 'App', look: 'csv', value: ({ app }) => app },
    { head: 'Tags', look: 'csv', value: (record) => valuesOf(record, 'tag').join(', ') },
    { head: 'Request id', look: 'csv', value: ({ request_id }) => request_id },
  ];
  return [
    {
      head: `Time (${zoneName()})`,
      isMain: true,
      value: ({ time }) => isoTime(time),
      cell: ({ request_id, time }) => (
        <a href={linkTo('requests', params, { id: request_id })}>{moment(time)}</a>
      ),
    },
    {
      head: 'Model',
      look: 'name',
      isMain: true,
      value: ({ asked }) => asked,
      cell: (record) => (
        <>
          {colours !== null && <span class={`swatch ${colours.get(servedBy(record))}`} aria-hidden="true" />}
          <Served of={record} />
        </>
      ),
    },
    { head: 'Served by', look: 'csv', value: servedBy },
    ...(isAdmin ? [keyColumn] : []),
    ...facts.filter(({ look }) => look === 'csv' || colours === null),
    {
      head: 'Status',
      look: 'ends',
      isMain: true,
      value: ({ status }) => status,
      cell: (record) => <Outcome of={record} />,
    },
    number('Tokens in', ({ prompt_tokens }) => prompt_tokens),
    number('Cached', cachedOf, share),
    {
      ...number('Tokens out', ({ completion_tokens }) => completion_tokens),
      cell: ({ completion_tokens, estimated }) => (estimated ? '~' : '') + count(completion_tokens),
    },
    number('First token', ({ first_token_ms }) => first_token_ms, milliseconds),
    number('Duration', ({ total_ms }) => total_ms, milliseconds),
    {
      ...number('Cost', ({ cost }) => cost),
      isMain: true,
      cell: ({ cost, currency, total_tokens }) =>
        cost === null || currency === null || (cost === 0 && total_tokens === 0)
          ? NONE
          : money(cost, currency),
    },
  ];
}

/** The requested model, and who served it, where that differs. */
function Served({ of: record }: { of: UsageRecord }) {
  const { asked } = record;
  const served = servedBy(record);
  return (
    <>
      <Name text={asked} title={`${asked} → ${served}`} />
      {served !== asked && (
        <span class="hint served">
          {' '}
          → <Name text={served} />
        </span>
      )}
    </>
  );
}

/** How a request ended, the number of its attempts, where there was more than one, and a break of the prompt cache. */
function Outcome({ of: { status, error_code, attempts = [], cache } }: { of: UsageRecord }) {
  const called = attempts.filter(({ ms }) => ms !== null).length;
  return (
    <>
      <span class={`status ${status}`}>{statusWords(status)}</span>{' '}
      {called > 1 && <span class="badge">{called} attempts</span>}{' '}
      {cache !== undefined && isBreak(cache.cause) && (
        <span class="badge" title={`${cacheTitle(cache)}. ${cacheAdvice(cache)}`}>
          cache: {cache.cause}
        </span>
      )}{' '}
      {error_code !== null && (
        <span class="hint code">
          <bdi>{error_code}</bdi>
        </span>
      )}
    </>
  );
}
