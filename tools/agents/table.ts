/** The table of runs in docs/clients/runs.md, between two comments. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client, Protocol, Trial } from './client.ts';

export const FILE = join(import.meta.dirname, '..', '..', 'docs', 'clients', 'runs.md');
const START = '<!-- npm run agents writes this table -->';
const END = '<!-- end of the table -->';

const PROTOCOLS: Readonly<Record<Protocol, string>> = {
  chat: 'Chat',
  messages: 'Messages',
  responses: 'Responses',
  gemini: 'Gemini',
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
  '| client | version | protocol | models (tool steps, requests) | result | date |',
  '| --- | --- | --- | --- | --- | --- |',
];

/** One line for the runs of a client that differ in their model only. */
export function linesOf(rows: readonly Row[]): string[] {
  const lines = new Map<
    string,
    { readonly before: string; readonly after: string; readonly models: string[] }
  >();
  for (const { client, trial, versions, requests, problems, date } of rows) {
    const protocol = [PROTOCOLS[trial.protocol], trial.note]
      .filter((words) => words !== undefined)
      .join(', ');
    const result = problems.length === 0 ? 'edited' : `fails: ${problems.join('; ').replaceAll('|', '\\|')}`;
    const before = `| [${client.title}](${client.id}.md) | ${versions.join(', ')} | ${protocol} |`;
    const after = `| ${result} | ${date} |`;
    const line = lines.get(before + after) ?? { before, after, models: [] };
    lines.set(before + after, line);
    line.models.push(`\`${trial.model}\` (${trial.calls('').length}, ${requests})`);
  }
  return [...lines.values()].map(({ before, models, after }) => `${before} ${models.join(', ')} ${after}`);
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
    const ran = linesOf(rows.filter(({ client }) => client.id === id));
    return ran.length > 0 ? ran : linesIn(text).filter((line) => line.includes(`](${id}.md)`));
  });
  return `${before}${START}\n${[...HEAD, ...lines].join('\n')}\n${END}${after}`;
}

export async function writeRows(rows: readonly Row[], ids: readonly string[]): Promise<void> {
  await writeFile(FILE, withRows(await readFile(FILE, 'utf8'), rows, ids));
}
