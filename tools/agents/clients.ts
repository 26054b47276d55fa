/** The clients that npm run agents runs, and the aliases that their pages give the deployment. */
import { claudeCode } from './claude-code.ts';
import { type Client, Page } from './client.ts';
import { codex } from './codex.ts';
import { copilotCli } from './copilot-cli.ts';
import { geminiClients } from './gemini.ts';
import { kilo } from './kilo.ts';
import { opencode } from './opencode.ts';
import { pi } from './pi.ts';
import { qwenCode } from './qwen-code.ts';
import {
  aiSdkClient,
  anthropicSdkClient,
  huggingFaceClient,
  langChainClient,
  openaiAgentsClient,
  openaiSdkClient,
  openrouterSdkClient,
  xsaiClient,
} from './sdks.ts';

export const CLIENTS: readonly Client[] = [
  claudeCode,
  codex,
  opencode,
  kilo,
  pi,
  copilotCli,
  qwenCode,
  geminiClients,
  openaiSdkClient,
  anthropicSdkClient,
  aiSdkClient,
  langChainClient,
  openaiAgentsClient,
  openrouterSdkClient,
  xsaiClient,
  huggingFaceClient,
];

/** `ALIASES`, as the page of Codex has it. */
export function deploymentAliases(): string {
  const [, aliases = '{}'] = /^ALIASES = '(.*)'$/m.exec(new Page('codex').block('toml', 'ALIASES')) ?? [];
  return aliases;
}
