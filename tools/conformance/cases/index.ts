/** All cases, in the order of the table. */
import type { Case } from '../case.ts';
import { calls } from './calls.ts';
import { contract } from './contract.ts';
import { errors } from './errors.ts';
import { finish } from './finish.ts';
import { framing } from './framing.ts';
import { ids } from './ids.ts';
import { metering } from './metering.ts';
import { reasoning } from './reasoning.ts';
import { buffering, disconnects, holding, latency } from './time.ts';
import { truncation } from './truncation.ts';
import { usage } from './usage.ts';

export const CASES: readonly Case[] = [
  ...framing,
  ...ids,
  ...calls,
  ...reasoning,
  ...finish,
  ...usage,
  ...errors,
  ...truncation,
  ...disconnects,
  ...latency,
  ...holding,
  ...buffering,
  ...metering,
  ...contract,
];
