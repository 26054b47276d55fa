/**
 * Questions of users, and what answers each: the site's search by its first result (questions.ts), and a way of two
 * clicks from README (test/docs/questions.test.ts).
 */

export interface Question {
  /** What someone types. */
  readonly question: string;
  /** Sections, or pages with all their sections, that answer it. */
  readonly answers: readonly [string, ...string[]];
}

const ask = (question: string, ...answers: [string, ...string[]]): Question => ({ question, answers });

export const QUESTIONS: readonly Question[] = [
  ask('how do I set a budget', '/budgets'),
  ask('why was I charged', '/budgets#what-is-charged'),
  ask('why did this request fail', '/troubleshooting', '/errors'),
  ask('how do I add a provider', '/providers#add-a-provider-of-your-own', '/adding-a-provider'),
  ask('how do I add groq', '/providers'),
  ask('how do I deploy below /ai', '/deployment#on-an-existing-domain-below-a-path-such-as-ai'),
  ask(
    'spend by developer yesterday',
    '/attribution#spend-by-developer',
    '/metering#reports',
    '/dashboard#views',
  ),
  ask('sso', '/sign-in'),
  ask("delete a person's data", '/privacy'),
  ask('gdpr', '/privacy'),
  ask('what will cloudflare cost me', '/sizes-and-costs', '/ledgers#what-it-costs', '/budgets#what-it-costs'),
  ask('what does it cost a month', '/sizes-and-costs#cost-of-cloudflare-a-month'),
  ask('slack message at 80 %', '/alerts'),
  ask('slack', '/alerts'),
  ask('teams', '/budgets#teams'),
  ask('weekly', '/alerts#weekly-summary', '/budgets'),
  ask('bedrock', '/clouds', '/providers#aws-bedrock'),
  ask('vertex', '/clouds', '/providers#vertex-ai'),
  ask('azure', '/clouds', '/providers#azure'),
  ask('docker', '/deployment#without-cloudflare'),
  ask('kubernetes', '/deployment#without-cloudflare'),
  ask('self-hosting', '/deployment#without-cloudflare'),
  ask('can I run it without cloudflare', '/deployment#without-cloudflare'),
  ask('bundle size', '/sizes-and-costs#bundles'),
  ask('which node', '/sizes-and-costs#which-node'),
  ask('read-only', '/keys#tokens-that-only-read'),
  ask('rotate a key', '/keys#rotate'),
  ask('limit requests per minute of a user', '/budgets#limits-for-each-user'),
  ask('what does upstream_truncated mean', '/errors#of-the-provider', '/streams#how-a-stream-ends'),
  ask('401 invalid api key', '/troubleshooting#invalid-api-key-401', '/errors#of-the-request'),
  ask('why did my prompt cache break', '/prompt-caches'),
  ask('are my prompts stored', '/privacy'),
  ask('claude code with deepseek', '/clients/claude-code', '/routing#claude-code-at-another-model'),
  ask('fallback to another model when a provider is down', '/routing'),
  ask(
    'which reasoning effort does the model support',
    '/models#reasoning-efforts',
    '/request-translation#efforts',
  ),
  ask('opentelemetry otlp', '/operations#logs-and-traces-elsewhere', '/metering#traces'),
  ask('backup and restore', '/operations#backups', '/operations#restore'),
  ask('upgrade and rollback', '/operations#upgrades-and-rollbacks'),
  ask('staging environment', '/deployment#environments-and-rollout'),
  ask('litellm', '/coming-from-other-gateways#litellm'),
  ask('hono', '/embedding'),
];
