/** pi over its three protocols: its read, edit and bash tools. */
import { join } from 'node:path';
import { type Client, exportsOf, type Protocol, type Trial } from './client.ts';

const PACKAGE = '@earendil-works/pi-coding-agent';

/** pi's names of the protocols. */
const APIS: Readonly<Record<Exclude<Protocol, 'gemini'>, string>> = {
  chat: 'openai-completions',
  messages: 'anthropic-messages',
  responses: 'openai-responses',
};

function trial(protocol: Exclude<Protocol, 'gemini'>, model: string): Trial {
  return {
    protocol,
    model,
    versions: [PACKAGE],
    calls: (path) => [
      { name: 'read', arguments: { path } },
      { name: 'edit', arguments: { path, edits: [{ oldText: '300 cm', newText: '312 cm' }] } },
      { name: 'edit', arguments: { path, edits: [{ oldText: 'calm', newText: 'rising' }] } },
      { name: 'bash', arguments: { command: `cat ${path}` } },
    ],
    launch: ({ url, key, prompt, home, packages }, page) => {
      const models = page.replaced(page.block('json', '"providers"'), {
        'deepseek/deepseek-flash': model,
        'https://weir.example.com/v1': protocol === 'messages' ? url : `${url}/v1`,
        'openai-completions': APIS[protocol],
      });
      return {
        files: { [join(home, '.pi', 'agent', 'models.json')]: models },
        env: { WEIR_KEY: key, ...exportsOf(page.block('console', 'PI_OFFLINE'), { url, key }) },
        command: [
          process.execPath,
          join(packages, 'node_modules', PACKAGE, 'dist', 'bundle', 'cli.js'),
          ...['--provider', 'weir', '--model', model, '-p', prompt],
        ],
      };
    },
  };
}

export const pi: Client = {
  id: 'pi',
  title: 'pi',
  packages: [PACKAGE],
  trials: [
    trial('chat', 'deepseek/deepseek-flash'),
    trial('chat', 'mistral/mistral-small-latest'),
    trial('messages', 'gemini/gemini-3-flash-preview'),
    trial('responses', 'openai/gpt-6.1-terra'),
  ],
};
