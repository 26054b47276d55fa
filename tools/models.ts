/** Writes `docs/models.md`: npm run models. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { modelsText } from './models/document.ts';

writeFileSync(join(import.meta.dirname, '..', 'docs', 'models.md'), modelsText());
