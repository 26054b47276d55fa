/** Codex over Responses: its shell, and apply_patch under a name that Codex knows. */
import { join } from 'node:path';
import { type Client, PATCH, type ToolCall, type Trial } from './client.ts';

const PACKAGE = '@openai/codex';

const shell = (command: string): ToolCall => ({ name: 'exec_command', arguments: { cmd: command } });

/** Codex gives models that it knows as gpt-6 one tool, which runs JavaScript. */
const exec = (cmd: string): ToolCall => ({
  name: 'functions__exec',
  arguments: { input: `text((await tools.exec_command(${JSON.stringify({ cmd })})).output)` },
});

function trial(model: string, edit: readonly ToolCall[], show = shell): Trial {
  return {
    protocol: 'responses',
    model,
    versions: [PACKAGE],
    calls: (file) => [show(`cat ${file}`), ...edit, show(`cat ${file}`)],
    launch: ({ url, key, prompt, home, packages }, page) => {
      const settings = page.replaced(page.block('toml', '[model_providers.weir]'), {
        'deepseek/deepseek-flash': model,
        'http://127.0.0.1:8787': url,
      });
      return {
        files: { [join(home, '.codex', 'config.toml')]: `${settings}\n${page.block('toml', '[analytics]')}` },
        env: { WEIR_KEY: key },
        command: [
          process.execPath,
          join(packages, 'node_modules', PACKAGE, 'bin', 'codex.js'),
          // The temporary folder is no repository, and a container has no sandbox.
          ...['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'],
          prompt,
        ],
      };
    },
  };
}

/** Codex then tries a WebSocket first. */
function withWebSocket(plain: Trial): Trial {
  return {
    ...plain,
    note: 'WebSocket refused first',
    refusals: ['websocket_unsupported'],
    launch: (place, page) => {
      const { files = {}, ...launch } = plain.launch(place, page);
      const words = 'wire_api = "responses"';
      const settings = Object.entries(files).map(([path, text]) => {
        return [path, page.replaced(text, { [words]: `${words}\nsupports_websockets = true` })];
      });
      return { ...launch, files: Object.fromEntries(settings) };
    },
  };
}

const edits = (run: typeof shell) => [
  run("sed -i 's/300 cm/312 cm/' river.txt"),
  run("sed -i 's/calm/rising/' river.txt"),
];

export const codex: Client = {
  id: 'codex',
  title: 'Codex',
  packages: [PACKAGE],
  trials: [
    trial('deepseek/deepseek-flash', edits(shell)),
    withWebSocket(trial('deepseek/deepseek-flash', edits(shell))),
    trial('openai/gpt-6.1-terra', edits(exec), exec),
    trial('mistral/mistral-small-latest', edits(shell)),
    trial('zai/glm-5.3', edits(shell)),
    trial('moonshot/kimi-k3', edits(shell)),
    trial('xai/grok-4.7', edits(shell)),
    trial('bedrock/anthropic.claude-sonnet-5', edits(shell)),
    trial('bedrock/openai.gpt-oss-20b', edits(shell)),
    trial('bedrock/us.amazon.nova-2-lite-v1:0', edits(shell)),
    trial('cloudflare/@cf/openai/gpt-oss-20b', edits(shell)),
    trial('azure/gpt-6.1-terra', edits(exec), exec),
    trial('azure/claude-haiku-4-5', edits(shell)),
    trial('gpt-6.1-sol', edits(exec), exec),
    trial('gpt-5.5', [{ name: 'apply_patch', arguments: { input: PATCH } }]),
  ],
};
