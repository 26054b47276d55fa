/** Columns that tables of keys, of revoked keys and of teams share. */
import type { Key, Limits } from '../../api/types.ts';
import type { Column } from '../../parts/table.tsx';
import { BudgetLine, limitsInWords } from './budget.tsx';

/** A name, which leads to the page of what it names. */
export function nameColumn(head: string, hrefOf: (id: string) => string): Column<Pick<Key, 'id' | 'name'>> {
  return {
    head,
    look: 'name',
    isMain: true,
    value: ({ id, name }) => name || id,
    cell: ({ id, name }) => (
      <a href={hrefOf(id)}>
        <bdi title={name === '' ? id : `${name} (${id})`}>{name || id}</bdi>
      </a>
    ),
  };
}

/** One line, with a bar. @param path where its use is read */
export function budgetColumn(
  path: '/admin/keys' | '/v1/admin/teams',
  reloads: number,
): Column<Pick<Key, 'id' | 'budget'>> {
  return {
    head: 'Budget',
    isMain: true,
    cell: (of) => <BudgetLine of={of} path={path} reloads={reloads} />,
  };
}

export const LIMITS: Column<Limits> = {
  head: 'Limits',
  look: 'hint short',
  value: limitsInWords,
  cell: (of) => <span title={limitsInWords(of)}>{limitsInWords(of)}</span>,
};
