/**
 * Simulates Azure with the models of `openai`, `anthropic` and `compatible` behind its deployments: the key as `api-key` (for Claude
 * `x-api-key`), results of the filter before the role and in each chunk (recorded: azure-openai--*, 2025 to 2026-08), a blocked prompt.
 *
 * Tokens (completion): as the models behind the deployments.
 */
import { anthropic } from './anthropic.ts';
import { compatible } from './compatible.ts';
import { compact, type JsonObject } from './json.ts';
import { openai } from './openai.ts';
import { type Call, event, openaiRefusal, type Refusal, type Scene, type WireEvent } from './scene.ts';

const OPENAI = '/azure/openai/v1';
const CLAUDE = '/azure/anthropic/v1/messages';

/** Deployments, most of them with the names of their models. */
const DEPLOYMENTS: Readonly<Record<string, { readonly inner: Scene; readonly name: string }>> = {
  'gpt-4o-mini': { inner: openai, name: 'gpt-4o-mini' },
  'gpt-6.1-terra': { inner: openai, name: 'gpt-6.1-terra' },
  // `AZURE_MODELS` names the model of each.
  'prod-gpt': { inner: openai, name: 'gpt-6.1-terra' },
  'prod-claude': { inner: anthropic, name: 'claude-opus-5-5' },
  'claude-haiku-4-5': { inner: anthropic, name: 'claude-haiku-4-5' },
  'Llama-3.3-70B-Instruct': { inner: compatible, name: 'llama-3.3-70b-versatile' },
};

const SAFE = { hate: { filtered: false, severity: 'safe' }, violence: { filtered: false, severity: 'safe' } };

export const azure: Scene = {
  id: 'azure',
  routes: {
    [`${OPENAI}/chat/completions`]: 'chat',
    [`${OPENAI}/responses`]: 'responses',
    [`${OPENAI}/models`]: 'models',
    [CLAUDE]: 'chat',
  },
  models: Object.keys(DEPLOYMENTS),
  comment: 'ping',
  streamError: { message: 'The server had an error', type: 'server_error', param: null, code: null },
  refusal: (status, message) => openaiRefusal(status, { message, code: String(status) }),
  badKey: openaiRefusal(401, {
    code: '401',
    message:
      'Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.',
  }),
  keyOf: (headers) => headers['api-key'] ?? headers['x-api-key'],
  check,
  *stream(call) {
    const { inner, name } = deploymentOf(call);
    const events = inner.stream({ ...call, model: name, body: { ...call.body, model: name } });
    if (call.path === CLAUDE) return yield* events;
    if (call.operation === 'chat') yield firstFrame();
    for (const one of events) yield call.operation === 'chat' ? filtered(one) : one;
  },
  object: (call) => {
    const { inner, name } = deploymentOf(call);
    return inner.object({ ...call, model: name, body: { ...call.body, model: name } });
  },
};

function deploymentOf({ model }: Call) {
  return DEPLOYMENTS[model] ?? { inner: openai, name: model };
}

function check(call: Call): Refusal | undefined {
  const known = DEPLOYMENTS[call.model];
  if (known === undefined) {
    const message =
      'The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.';
    return openaiRefusal(404, { code: 'DeploymentNotFound', message });
  }
  const isClaude = known.inner === anthropic;
  const has = (name: string) => call.headers[name] !== undefined;
  if (isClaude !== (call.path === CLAUDE) || has(isClaude ? 'api-key' : 'x-api-key'))
    return openaiRefusal(404, { code: '404', message: 'Resource not found' });
  if (JSON.stringify(call.body).includes('blocked by the filter')) return blocked();
  return known.inner.check({ ...call, model: known.name, body: { ...call.body, model: known.name } });
}

/** https://learn.microsoft.com/azure/ai-services/openai/concepts/content-filter, read 2026-11-22. */
function blocked(): Refusal {
  const message =
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.";
  const results = { ...SAFE, violence: { filtered: true, severity: 'medium' } };
  const innererror = { code: 'ResponsibleAIPolicyViolation', content_filter_result: results };
  return openaiRefusal(400, {
    message,
    type: null,
    param: 'prompt',
    code: 'content_filter',
    status: 400,
    innererror,
  });
}

/** Before the role: no choice, and an empty id, model and object. */
function firstFrame(): WireEvent {
  const prompt_filter_results = [{ prompt_index: 0, content_filter_results: SAFE }];
  return event(
    'comment',
    compact({ choices: [], created: 0, id: '', model: '', object: '', prompt_filter_results }),
  );
}

/** Results of the filter in each choice. */
function filtered(one: WireEvent): WireEvent {
  const data = /^data: (\{.*\})\n\n$/.exec(one.text)?.[1];
  if (data === undefined) return one;
  const chunk = JSON.parse(data) as JsonObject; // decode
  const choices = Array.isArray(chunk.choices) ? chunk.choices : [];
  const results = choices.map((choice) => ({ content_filter_results: SAFE, ...(choice as JsonObject) })); // decode
  return { ...one, text: `data: ${compact({ ...chunk, choices: results })}\n\n` };
}
