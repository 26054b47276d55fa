/** Claude Code over Messages: its Read, Edit and Bash tools. */
import { join } from 'node:path';
import { type Client, exportsOf, learning, type Trial } from './client.ts';

const PACKAGE = '@anthropic-ai/claude-code';

function trial(model: string): Trial {
  return {
    protocol: 'messages',
    model,
    versions: [PACKAGE],
    calls: (file) => [
      { name: 'Read', arguments: { file_path: file } },
      { name: 'Edit', arguments: { file_path: file, old_string: '300 cm', new_string: '312 cm' } },
      { name: 'Edit', arguments: { file_path: file, old_string: 'calm', new_string: 'rising' } },
      { name: 'Bash', arguments: { command: `cat ${file}`, description: 'Shows the file' } },
    ],
    launch: ({ url, key, prompt, packages }, page) => {
      const code = page.replaced(page.block('console', 'ANTHROPIC_MODEL'), {
        'deepseek/deepseek-flash': model,
      });
      return {
        env: exportsOf(`${code}\n${page.block('console', 'DISABLE_NONESSENTIAL')}`, { url, key }),
        command: [
          join(packages, 'node_modules', '.bin', 'claude'),
          ...['-p', prompt, '--allowedTools', 'Read,Edit,Bash'],
        ],
      };
    },
  };
}

export const claudeCode: Client = {
  id: 'claude-code',
  title: 'Claude Code',
  packages: [PACKAGE],
  install: `${PACKAGE}/install.cjs`,
  trials: [
    trial('deepseek/deepseek-flash'),
    trial('openai/gpt-6.1-terra'),
    trial('gemini/gemini-3-flash-preview'),
    trial('anthropic/claude-sonnet-5'),
    // Their thinking cannot be off, which requests beside the loop ask for.
    trial('zai/glm-5.3'),
    trial('moonshot/kimi-k3'),
    trial('moonshot/kimi-k2.7-code'),
    trial('xai/grok-4.7'),
    trial('mistral/mistral-medium-latest'),
    trial('bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0'),
    trial('bedrock/openai.gpt-6.1-terra'),
    trial('bedrock/us.amazon.nova-2-lite-v1:0'),
    trial('cloudflare/@cf/openai/gpt-oss-20b'),
    trial('azure/claude-haiku-4-5'),
    trial('azure/gpt-6.1-terra'),
    ...learning(['max-tokens', 'only-medium', 'pattern'], trial),
  ],
};
