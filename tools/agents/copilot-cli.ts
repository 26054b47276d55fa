/** GitHub Copilot CLI over its three protocols: its view, edit and bash tools. */
import { join } from 'node:path';
import { type Client, exportsOf, type Protocol, type Trial } from './client.ts';

const PACKAGE = '@github/copilot';

/** Words of the page's block that selects a protocol, beside the block of Chat Completions. */
const BLOCKS: Readonly<Record<Exclude<Protocol, 'gemini'>, string>> = {
  chat: 'COPILOT_MODEL',
  messages: 'COPILOT_PROVIDER_TYPE=anthropic',
  responses: 'COPILOT_PROVIDER_WIRE_API=responses',
};

function trial(protocol: Exclude<Protocol, 'gemini'>, model: string): Trial {
  return {
    protocol,
    model,
    versions: [PACKAGE],
    calls: (path) => [
      { name: 'view', arguments: { path } },
      { name: 'edit', arguments: { path, old_str: '300 cm', new_str: '312 cm' } },
      { name: 'edit', arguments: { path, old_str: 'calm', new_str: 'rising' } },
      { name: 'bash', arguments: { command: `cat ${path}`, description: 'Shows the file' } },
    ],
    launch: ({ url, key, prompt, packages }, page) => {
      const chat = page.replaced(page.block('console', BLOCKS.chat), { 'deepseek/deepseek-flash': model });
      const own = page.block('console', BLOCKS[protocol]).replaceAll('deepseek/deepseek-flash', model);
      const offline = page.block('console', 'COPILOT_OFFLINE');
      return {
        env: exportsOf([chat, own, offline].join('\n'), { url, key }),
        command: [
          process.execPath,
          join(packages, 'node_modules', PACKAGE, 'npm-loader.js'),
          ...['-p', prompt, '--allow-all-tools'],
        ],
      };
    },
  };
}

export const copilotCli: Client = {
  id: 'copilot-cli',
  title: 'Copilot CLI',
  packages: [PACKAGE],
  trials: [
    trial('chat', 'deepseek/deepseek-flash'),
    trial('chat', 'openai/gpt-6.1-terra'),
    trial('messages', 'deepseek/deepseek-flash'),
    trial('messages', 'anthropic/claude-haiku-4-5'),
    trial('responses', 'openai/gpt-6.1-terra'),
    trial('responses', 'gemini/gemini-3-flash-preview'),
  ],
};
