/** Kilo over its three protocols: its read, edit and bash tools. */
import { join } from 'node:path';
import { type Client, exportsOf, PATCH, type Protocol, type ToolCall, type Trial } from './client.ts';

/** `@kilocode/cli` starts the program of this system, which is a package of its own. */
const PACKAGE = `@kilocode/cli-${process.platform}-${process.arch}`;

/** OpenAI's newer models get a tool for patches instead of `edit`. */
function edits(filePath: string, model: string): ToolCall[] {
  if (model.startsWith('openai/')) return [{ name: 'apply_patch', arguments: { patchText: PATCH } }];
  return [
    { name: 'edit', arguments: { filePath, oldString: '300 cm', newString: '312 cm' } },
    { name: 'edit', arguments: { filePath, oldString: 'calm', newString: 'rising' } },
  ];
}

function trial(protocol: Protocol, npm: string, model: string): Trial {
  return {
    protocol,
    model,
    versions: [PACKAGE],
    calls: (filePath) => [
      { name: 'read', arguments: { filePath } },
      ...edits(filePath, model),
      { name: 'bash', arguments: { command: `cat ${filePath}`, description: 'Shows the file' } },
    ],
    launch: ({ url, key, prompt, home, packages }, page) => {
      const settings = page.replaced(page.block('json', '"provider"'), {
        'deepseek/deepseek-flash': model,
        '@ai-sdk/openai-compatible': npm,
      });
      return {
        files: { [join(home, '.config', 'kilo', 'kilo.json')]: settings },
        env: {
          WEIR_URL: url,
          WEIR_KEY: key,
          ...exportsOf(page.block('console', 'KILO_DISABLE'), { url, key }),
        },
        command: [join(packages, 'node_modules', PACKAGE, 'bin', 'kilo'), 'run', '--auto'],
        input: prompt,
      };
    },
  };
}

export const kilo: Client = {
  id: 'kilo',
  title: 'Kilo',
  packages: [PACKAGE],
  trials: [
    trial('chat', '@ai-sdk/openai-compatible', 'deepseek/deepseek-flash'),
    trial('chat', '@ai-sdk/openai-compatible', 'mistral/mistral-small-latest'),
    trial('messages', '@ai-sdk/anthropic', 'anthropic/claude-sonnet-5'),
    trial('responses', '@ai-sdk/openai', 'openai/gpt-6.1-terra'),
  ],
};
