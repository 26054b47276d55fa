/** The fault `status-<code>` and `status-<code>-<form>`: any HTTP error, with each form of error body that real providers send. */
import { compact } from './json.ts';
import { errorType, type Refusal, type Scene } from './scene.ts';

const MESSAGE = 'Simulated failure';
const RETRY_AFTER_SECONDS = '7';

const FORMS: Readonly<Record<string, (status: number) => Omit<Refusal, 'status'>>> = {
  openai: (status) => {
    const error = { message: MESSAGE, type: errorType(status), param: null, code: `simulated_${status}` };
    return { body: compact({ error }) };
  },
  string: () => ({ body: compact({ error: MESSAGE }) }),
  object: (status) => {
    const rest = { type: errorType(status), param: null, code: `simulated_${status}` };
    return { body: compact({ object: 'error', message: MESSAGE, ...rest }) };
  },
  detail: () => ({ body: compact({ detail: [{ type: 'value_error', loc: ['body'], msg: MESSAGE }] }) }),
  text: () => ({ body: MESSAGE, contentType: 'text/plain' }),
  html: (status) => ({
    body: `<!doctype html><html><head><title>${status}</title></head><body><h1>${MESSAGE}</h1></body></html>`,
    contentType: 'text/html; charset=utf-8',
  }),
  none: () => ({ body: '' }),
};

export const REFUSAL_FORMS: readonly string[] = Object.keys(FORMS);

/** Undefined if the name is not such a fault. Without a form, the body has the provider's own form. */
export function refusalByName(name: string, scene: Scene): Refusal | undefined {
  const [, code, form] = /^status-([45]\d\d)(?:-([a-z]+))?$/.exec(name) ?? [];
  if (code === undefined) return undefined;
  const status = Number(code);
  const headers = status === 429 || status === 503 ? { 'retry-after': RETRY_AFTER_SECONDS } : {};
  if (form === undefined) return { headers, ...scene.refusal(status, MESSAGE) };
  const body = FORMS[form]?.(status);
  return body && { status, headers, ...body };
}
