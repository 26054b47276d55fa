/** Writes a request in one go, without the pause that a large one makes. */
import type { CanonicalRequest } from '../../src/canonical/conversation.ts';
import type { ApiError } from '../../src/canonical/error.ts';
import { prepareWrite, type WrittenRequest } from '../../src/protocols/shared/request-form.ts';
import type { RequestForm, WriteOptions } from '../../src/request-translation/translate.ts';
import { ok, type Result } from '../../src/shared/result.ts';

/** A body with the names of the fields that were dropped or changed: `x-weir-dropped`, `x-weir-changed`. */
export interface Translation extends Omit<WrittenRequest, 'report'> {
  readonly dropped: readonly string[];
  readonly changed: readonly string[];
}

export function writeRequest(
  form: RequestForm,
  request: CanonicalRequest,
  options: WriteOptions,
): Result<Translation, ApiError> {
  const prepared = prepareWrite(form, request, options.provider);
  if (prepared.kind === 'error') return prepared;
  const written = prepared.value(options);
  if (written.kind === 'error') return written;
  const { report, ...rest } = written.value;
  return ok({ ...rest, dropped: report.dropped, changed: report.changed });
}
