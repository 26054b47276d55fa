/**
 * Gemini's clients: Gemini CLI with its read_file, replace and run_shell_command tools, Google's SDK, and what others
 * built for its API.
 */
import { join } from 'node:path';
import { type Client, exportsOf, GEMINI_MODELS, launchProgram, readAndWrite, type Trial } from './client.ts';

const CLI = '@google/gemini-cli';
const SDK = '@google/genai';

function cli(model: string): Trial {
  return {
    protocol: 'gemini',
    model,
    versions: [CLI],
    calls: (file_path) => [
      { name: 'read_file', arguments: { file_path } },
      {
        name: 'replace',
        arguments: { file_path, old_string: '300 cm', new_string: '312 cm', instruction: 'Sets the level' },
      },
      {
        name: 'replace',
        arguments: { file_path, old_string: 'calm', new_string: 'rising', instruction: 'Sets the state' },
      },
      {
        name: 'run_shell_command',
        arguments: { command: `cat ${file_path}`, description: 'Shows the file' },
      },
    ],
    launch: ({ url, key, prompt, home, packages }, page) => ({
      files: { [join(home, '.gemini', 'settings.json')]: page.block('json', 'usageStatisticsEnabled') },
      env: {
        ...exportsOf(page.block('sh', 'GOOGLE_GEMINI_BASE_URL'), { url, key }),
        GEMINI_CLI_NO_RELAUNCH: 'true',
        GEMINI_CLI_TRUST_WORKSPACE: 'true',
      },
      command: [
        process.execPath,
        join(packages, 'node_modules', CLI, 'bundle', 'gemini.js'),
        ...['-m', model, '--approval-mode', 'yolo', '-p', prompt],
      ],
    }),
  };
}

function sdk(model: string): Trial {
  return {
    protocol: 'gemini',
    model,
    versions: [SDK],
    calls: readAndWrite,
    launch: (place, page) =>
      launchProgram(page.replaced(page.block('ts', 'readFile'), { 'deepseek/deepseek-flash': model }), place),
  };
}

export const geminiClients: Client = {
  id: 'gemini',
  title: "Gemini CLI, Google's SDK",
  packages: [CLI, SDK],
  trials: [...[...GEMINI_MODELS, 'gemini/gemini-3-flash-preview'].map(cli), ...GEMINI_MODELS.map(sdk)],
};
