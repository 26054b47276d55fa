/** Writes a request in one go, without the pause that a large one makes. */
import type { CanonicalRequest } from '../../src/canonical/conversation.ts';
import { prepareWrite, type WrittenRequest } from '../../src/protocols/shared/request-form.ts';
import type { RequestForm, WriteOptions } from '../../src/request-translation/translate.ts';

export function writeRequest(
  form: RequestForm,
  request: CanonicalRequest,
  options: WriteOptions,
): WrittenRequest {
  const prepared = prepareWrite(form, request, options.provider);
  return prepared.kind === 'error' ? prepared : prepared.value(options);
}
