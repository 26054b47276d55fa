/** Qwen Code over Chat Completions: its read_file, edit and run_shell_command tools. */
import { join } from 'node:path';
import { type Client, exportsOf, type Trial } from './client.ts';

const PACKAGE = '@qwen-code/qwen-code';

function trial(model: string): Trial {
  return {
    protocol: 'chat',
    model,
    versions: [PACKAGE],
    calls: (file_path) => [
      { name: 'read_file', arguments: { file_path } },
      { name: 'edit', arguments: { file_path, old_string: '300 cm', new_string: '312 cm' } },
      { name: 'edit', arguments: { file_path, old_string: 'calm', new_string: 'rising' } },
      {
        name: 'run_shell_command',
        arguments: { command: `cat ${file_path}`, description: 'Shows the file', is_background: false },
      },
    ],
    launch: ({ url, key, prompt, home, packages }, page) => {
      const code = page.replaced(page.block('console', 'OPENAI_MODEL'), { 'deepseek/deepseek-flash': model });
      return {
        files: { [join(home, '.qwen', 'settings.json')]: page.block('json', 'privacy') },
        env: exportsOf(code, { url, key }),
        command: [
          process.execPath,
          join(packages, 'node_modules', PACKAGE, 'cli.js'),
          ...['--auth-type', 'openai', '--approval-mode', 'yolo', '-p', prompt],
        ],
      };
    },
  };
}

export const qwenCode: Client = {
  id: 'qwen-code',
  title: 'Qwen Code',
  packages: [PACKAGE],
  trials: [
    trial('deepseek/deepseek-flash'),
    trial('mistral/mistral-small-latest'),
    trial('openai/gpt-6.1-terra'),
    trial('anthropic/claude-sonnet-5'),
  ],
};
