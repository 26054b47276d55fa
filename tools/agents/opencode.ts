/** opencode over its three packages: its read, edit and bash tools. */
import { join } from 'node:path';
import {
  type Client,
  exportsOf,
  learning,
  PATCH,
  type Protocol,
  type ToolCall,
  type Trial,
} from './client.ts';

const PACKAGE = 'opencode-ai';

/** OpenAI's newer models get a tool for patches instead of `edit`. */
function edits(filePath: string, model: string): ToolCall[] {
  if (model.startsWith('openai/')) return [{ name: 'apply_patch', arguments: { patchText: PATCH } }];
  return [
    { name: 'edit', arguments: { filePath, oldString: '300 cm', newString: '312 cm' } },
    { name: 'edit', arguments: { filePath, oldString: 'calm', newString: 'rising' } },
  ];
}

/** @param small the model that writes the session's title */
function trial(protocol: Protocol, npm: string, model: string, small = model): Trial {
  return {
    protocol,
    model,
    versions: [PACKAGE],
    calls: (filePath) => [
      { name: 'read', arguments: { filePath } },
      ...edits(filePath, model),
      { name: 'bash', arguments: { command: `cat ${filePath}`, description: 'Shows the file' } },
    ],
    launch: ({ url, key, prompt, project, packages }, page) => {
      const settings = page.replaced(page.block('json', '"provider"'), {
        'deepseek/deepseek-flash': model,
        '@ai-sdk/openai-compatible': npm,
        'weir/mistral/mistral-small-latest': `weir/${small}`,
      });
      return {
        files: { [join(project, 'opencode.json')]: settings },
        env: {
          WEIR_URL: url,
          WEIR_KEY: key,
          ...exportsOf(page.block('console', 'OPENCODE_DISABLE'), { url, key }),
        },
        command: [join(packages, 'node_modules', '.bin', 'opencode'), 'run'],
        // An argument with spaces would be quoted.
        input: prompt,
      };
    },
  };
}

/** With sampling and an effort, which opencode sends if its settings have them. */
function withSampling(model: string): Trial {
  const plain = trial('chat', '@ai-sdk/openai-compatible', model, 'mistral/mistral-small-latest');
  return {
    ...plain,
    launch: (place, page) => {
      const { files = {}, ...launch } = plain.launch(place, page);
      const words = '"reasoning": true, "tool_call": true';
      const settings = Object.entries(files).map(([path, text]) => {
        const options = '"temperature": true, "options": { "temperature": 0.7, "reasoningEffort": "high" }';
        return [path, page.replaced(text, { [words]: `${words}, ${options}` })];
      });
      return { ...launch, files: Object.fromEntries(settings) };
    },
  };
}

export const opencode: Client = {
  id: 'opencode',
  title: 'opencode',
  packages: [PACKAGE],
  install: `${PACKAGE}/postinstall.mjs`,
  trials: [
    trial('chat', '@ai-sdk/openai-compatible', 'deepseek/deepseek-flash'),
    trial('chat', '@ai-sdk/openai-compatible', 'openai/gpt-6.1-terra'),
    trial('chat', '@ai-sdk/openai-compatible', 'zai/glm-5.3'),
    trial('chat', '@ai-sdk/openai-compatible', 'moonshot/kimi-k3'),
    trial('messages', '@ai-sdk/anthropic', 'xai/grok-4.7'),
    trial('messages', '@ai-sdk/anthropic', 'anthropic/claude-sonnet-5'),
    trial('chat', '@ai-sdk/openai-compatible', 'bedrock/us.amazon.nova-2-lite-v1:0'),
    trial('chat', '@ai-sdk/openai-compatible', 'bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0'),
    trial('responses', '@ai-sdk/openai', 'openai/gpt-6.1-terra'),
    ...learning(['temperature', 'only-medium', 'unknown-names'], withSampling),
  ],
};
