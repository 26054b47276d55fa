/** Writes `docs/llms.txt`: npm run llms. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DOCS, writtenLlmsText } from './site/llms.ts';

writeFileSync(join(DOCS, 'llms.txt'), writtenLlmsText());
