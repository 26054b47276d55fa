/** The table of runs in docs/clients/README.md, between two comments. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client, Protocol, Trial } from './client.ts';

export const FILE = join(import.meta.dirname, '..', '..', 'docs', 'clients', 'README.md');
const START = '<!-- npm run agents writes this table -->';
const END = '<!-- end of the table -->';

const PROTOCOLS: Readonly<Record<Protocol, string>> = {
  chat: 'Chat',
  messages: 'Messages',
  responses: 'Responses',
};

export interface Row {
  readonly client: Pick<Client, 'id' | 'title'>;
  readonly trial: Pick<Trial, 'protocol' | 'model' | 'note' | 'calls'>;
  /** Packages with their versions. */
  readonly versions: readonly string[];
  readonly requests: number;
  readonly problems: readonly string[];
  /** YYYY-MM-DD. */
  readonly date: string;
}

export const HEAD = [
  '| client | version | protocol | model | tool steps | requests | result | date |',
  '| --- | --- | --- | --- | --- | --- | --- | --- |',
];

export function lineOf({ client, trial, versions, requests, problems, date }: Row): string {
  const result = problems.length === 0 ? 'edited' : `fails: ${problems.join('; ').replaceAll('|', '\\|')}`;
  const cells = [
    `[${client.title}](${client.id}.md)`,
    versions.join(', '),
    [PROTOCOLS[trial.protocol], trial.note].filter((words) => words !== undefined).join(', '),
    `\`${trial.model}\``,
    trial.calls('').length,
    requests,
    result,
    date,
  ];
  return `| ${cells.join(' | ')} |`;
}

/** The lines between the comments: the head and the rows. */
export function linesIn(text: string): string[] {
  const [, table = ''] = text.split(START);
  return (table.split(END)[0] ?? '').trim().split('\n');
}

/** Replaces the rows of the clients that ran, and keeps those of the others. `ids` is the order. */
export function withRows(text: string, rows: readonly Row[], ids: readonly string[]): string {
  const [before, rest] = text.split(START);
  const [, after] = rest?.split(END) ?? [];
  if (before === undefined || after === undefined) throw new Error(`${FILE} has no place for the table`);
  const lines = ids.flatMap((id) => {
    const ran = rows.filter(({ client }) => client.id === id).map(lineOf);
    return ran.length > 0 ? ran : linesIn(text).filter((line) => line.includes(`](${id}.md)`));
  });
  return `${before}${START}\n${[...HEAD, ...lines].join('\n')}\n${END}${after}`;
}

export async function writeRows(rows: readonly Row[], ids: readonly string[]): Promise<void> {
  await writeFile(FILE, withRows(await readFile(FILE, 'utf8'), rows, ids));
}
