/** The matrix of client protocols and providers: its gateway, its cells and its Markdown table. */
import { type Gateway, SIGNED_BEDROCK, startGateway } from '../../test/e2e/gateway.ts';
import { compatibleScenes } from '../simulator/scenes.ts';
import { completionCell, loopCell } from './cell.ts';
import type { Row } from './rows.ts';

/** The table's columns, and the cell that each runs. */
export const COLUMNS: readonly (readonly [
  title: string,
  run: (gateway: Gateway, row: Row) => Promise<string>,
])[] = [
  ['chat', (gateway, { model }) => loopCell(gateway, 'chat', model)],
  ['Messages', (gateway, { model }) => loopCell(gateway, 'messages', model)],
  ['Responses', (gateway, { model }) => loopCell(gateway, 'responses', model)],
  ['Gemini', (gateway, { model }) => loopCell(gateway, 'gemini', model)],
  ['completions', (gateway, { legacy }) => completionCell(gateway, legacy)],
];

/**
 * Starts a gateway with the providers of the tests, whose requests to Bedrock are signed. The lenient provider is
 * configured a second time, with a server that has legacy completions.
 */
export function startMatrixGateway(): Promise<Gateway> {
  const api_key = 'COMPATIBLE_SECRET';
  return startGateway({
    vars: (url) => ({
      ...SIGNED_BEDROCK,
      PROVIDERS: JSON.stringify({
        ...Object.fromEntries(
          compatibleScenes.map(({ id, profile: like = id }) => [
            id,
            { base_url: `${url}/${id}/v1`, api_key, like },
          ]),
        ),
        compatible: { base_url: `${url}/compatible/v1`, api_key },
        legacy: { base_url: `${url}/openai/v1`, api_key },
      }),
    }),
  });
}

/** The table's first two lines. */
export const HEAD: readonly string[] = [
  lineOf(['provider and model', ...COLUMNS.map(([title]) => title)]),
  lineOf(['---', ...COLUMNS.map(() => '---')]),
];

export function rowLine({ model }: Row, cells: readonly string[]): string {
  return lineOf([`\`${model}\``, ...cells]);
}

function lineOf(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}
