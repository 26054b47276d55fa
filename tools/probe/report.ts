/** Prints the results of a probe: a table, totals, and what to check in Weir. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { tableLine } from '../../src/fitting/rows.ts';
import { readStatements } from '../../src/fitting/statements.ts';
import { isAboutRequest } from '../../src/request-translation/dropped-fields.ts';
import type { JsonObject } from '../../src/shared/json.ts';
import { table } from '../simulator/terminal.ts';
import type { Planned, Target } from './plan.ts';
import type { ProbeRun, Result } from './runner.ts';
import { VERDICTS, type Verdict, WITHOUT_EFFECT } from './verdict.ts';

const PROVIDERS_FOLDER = fileURLToPath(new URL('../../src/providers/', import.meta.url).href);
const PROTOCOLS_FOLDER = 'src/protocols';

export interface Report {
  readonly provider: string;
  readonly model: string;
  readonly base_url: string;
  /** The date of the probe. */
  readonly date: string;
  readonly counts: Readonly<Record<Verdict, number>>;
  readonly results: readonly Result[];
  readonly recordings: number;
  readonly to_do: readonly string[];
  readonly stopped: string | null;
}

export function reportOf(target: Target, plan: readonly Planned[], run: ProbeRun): Report {
  const { results, recordings, stopped } = run;
  const count = (verdict: Verdict) => results.filter((result) => result.verdict === verdict).length;
  const file = `src/providers/${fileOf(target.provider.id)}`;
  const bodies = new Map(plan.map(({ name, raw }) => [name, raw]));
  return {
    provider: target.provider.id,
    model: target.model,
    base_url: target.baseUrl,
    date: new Date().toISOString().slice(0, 10),
    counts: {
      taken: count('taken'),
      mended: count('mended'),
      refused: count('refused'),
      stale: count('stale'),
      broken: count('broken'),
      unclear: count('unclear'),
    },
    results,
    recordings,
    to_do: adviceOn(results, file, bodies, target.model),
    stopped,
  };
}

/** 1 if Weir is wrong, 2 if the probe could not be finished. */
export function exitCodeOf({ results, counts, stopped }: Report): number {
  if (counts.broken > 0 || results.some(({ breaks }) => breaks.length > 0)) return 1;
  return stopped === null ? 0 : 2;
}

/** The file that defines the provider: some files define several. */
function fileOf(id: string): string {
  const defines = new RegExp(`\\bid: '${id}'|compatibleProfile\\(\\s*'${id}'`);
  const files = readdirSync(PROVIDERS_FOLDER).filter((name) => name.endsWith('.ts'));
  return files.find((name) => defines.test(readFileSync(PROVIDERS_FOLDER + name, 'utf8'))) ?? '';
}

interface Advised {
  readonly result: Result;
  readonly file: string;
  readonly body: JsonObject;
  readonly model: string;
}

/** One line for each action, with the names of all bodies that need it. */
function adviceOn(
  results: readonly Result[],
  file: string,
  bodies: ReadonlyMap<string, JsonObject>,
  model: string,
): string[] {
  const named = new Map<string, string[]>();
  for (const result of results) {
    for (const advice of advices({ result, file, model, body: bodies.get(result.name) ?? {} })) {
      named.set(advice, [...(named.get(advice) ?? []), result.name]);
    }
  }
  return [...named].map(([advice, names]) => `${names.join(', ')}: ${advice}`);
}

/** What the gateway would learn from the refusal, as the line of the table. */
function* learnedFrom(message: string, body: JsonObject, file: string, model: string): Generator<string> {
  for (const { finding } of readStatements({ message, code: '', field: undefined }, { body, betas: [] })) {
    const line = tableLine(finding, model);
    // The advice above names these.
    const isNamed = finding.kind === 'unsupported' && isAboutRequest(finding.field);
    if (line !== null && !isNamed) yield `learned: ${file} needs \`${line}\``;
  }
}

function* advices({ result, file, body, model }: Advised): Generator<string> {
  const fields = Object.keys(body);
  const { name, verdict, note, breaks, newKeys } = result;
  const rows = result.rows.map((row) => `\`${row}\``).join(', ');
  if (note === WITHOUT_EFFECT) {
    yield `${note}: if this is documented, mark it as \`ignored\` in \`fields\` of ${file}`;
  }
  if (verdict === 'refused') yield* adviceOnRefusal(name, file, fields);
  if (verdict === 'refused') yield* learnedFrom(result.note, body, file, model);
  if (verdict === 'stale') yield `${note}, but the provider accepts it: is ${rows} in ${file} out of date?`;
  if (verdict === 'broken') yield `Weir breaks the request (${note}): fix ${rows} in ${file}`;
  if (verdict === 'unclear') yield `repeat the probe (${note})`;
  for (const fault of breaks) {
    yield `the output breaks the contract (${fault}): fix ${PROTOCOLS_FOLDER} or src/stream`;
  }
  for (const key of newKeys) yield `new key in the stream: ${key}: should ${PROTOCOLS_FOLDER} read it?`;
}

/** A rejection is passed to the client (Q6), unless Weir may drop the field or must rewrite it. */
function* adviceOnRefusal(name: string, file: string, fields: readonly string[]): Generator<string> {
  const [group] = name.split('/');
  if (group === 'recorded') {
    yield 'was accepted when it was recorded: has the provider or the model changed?';
  } else if (group === 'message' || group === 'turn') {
    yield `rejected: \`messages\` in ${file} must rewrite it`;
  } else {
    for (const field of fields.filter(isAboutRequest)) {
      yield `refused: ${file} needs \`fields.${field}: REFUSED\``;
    }
  }
}

export function linesOf(report: Report): string[] {
  const { results, counts, recordings, to_do, stopped } = report;
  const rows = results.map(({ name, verdict, note }) => [name, verdict, note]);
  const streams = results.reduce((sum, result) => sum + result.streams, 0);
  const breaks = results.reduce((sum, result) => sum + result.breaks.length, 0);
  const newKeys = results.reduce((sum, result) => sum + result.newKeys.length, 0);
  const compared =
    recordings === 0 ? "OpenAI's keys alone" : `OpenAI's keys and ${recordings} recorded streams`;
  return [
    ...table(['body', 'verdict', 'what'], rows),
    '',
    VERDICTS.map((verdict) => `${verdict} ${counts[verdict]}`).join(', '),
    `${streams} streams: ${breaks} broken rules of the contract, ${newKeys} new keys (compared with ${compared})`,
    '',
    ...(to_do.length === 0 ? [] : ['What to check:', ...to_do.map((line) => `- ${line}`), '']),
    ...(stopped === null ? [] : [`STOPPED: ${stopped}`]),
    `${report.provider}, ${report.model}, ${report.base_url}, ${report.date}`,
  ];
}
