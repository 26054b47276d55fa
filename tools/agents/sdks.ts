/** The SDKs: the programs of their pages. */
import { type Client, launchProgram, type Protocol, readAndWrite, type Trial } from './client.ts';

type Words = Readonly<Record<string, string>>;

function aiSdk(protocol: Protocol, model: string, name: string, words: Words): Trial {
  return {
    protocol,
    model,
    versions: ['ai', name],
    calls: readAndWrite,
    launch: (place, page) => {
      const code = page.block('ts', 'readFile');
      return launchProgram(page.replaced(code, { 'deepseek/deepseek-flash': model, ...words }), place);
    },
  };
}

const AI_ANTHROPIC = {
  '@ai-sdk/openai-compatible': '@ai-sdk/anthropic',
  createOpenAICompatible: 'createAnthropic',
};
const AI_OPENAI = { '@ai-sdk/openai-compatible': '@ai-sdk/openai', createOpenAICompatible: 'createOpenAI' };

export const aiSdkClient: Client = {
  id: 'ai-sdk',
  title: 'AI SDK',
  packages: ['ai', '@ai-sdk/openai-compatible', '@ai-sdk/anthropic', '@ai-sdk/openai', 'zod'],
  trials: [
    aiSdk('chat', 'deepseek/deepseek-flash', '@ai-sdk/openai-compatible', {}),
    aiSdk('chat', 'openai/gpt-6.1-terra', '@ai-sdk/openai-compatible', {}),
    aiSdk('messages', 'anthropic/claude-sonnet-5', '@ai-sdk/anthropic', AI_ANTHROPIC),
    aiSdk('messages', 'mistral/mistral-small-latest', '@ai-sdk/anthropic', AI_ANTHROPIC),
    aiSdk('responses', 'gemini/gemini-3-flash-preview', '@ai-sdk/openai', AI_OPENAI),
    aiSdk('responses', 'deepseek/deepseek-flash', '@ai-sdk/openai', AI_OPENAI),
  ],
};

/** @param constant the model's name in the page's first block */
function langChain(protocol: Protocol, constant: string, model: string, name: string): Trial {
  return {
    protocol,
    model,
    versions: ['langchain', name],
    calls: readAndWrite,
    launch: (place, page) => {
      const named = page.block('ts', 'new ChatOpenAI').replaceAll(/model: '[^']+'/g, `model: '${model}'`);
      const agent = page.replaced(page.block('ts', 'readFile'), { 'model: chat': `model: ${constant}` });
      return launchProgram(`${named}\n${agent}`, place);
    },
  };
}

export const langChainClient: Client = {
  id: 'langchain',
  title: 'LangChain',
  packages: [
    ...['langchain', '@langchain/core', '@langchain/openai', '@langchain/anthropic', '@langchain/deepseek'],
    ...['@langchain/mistralai', 'zod'],
  ],
  trials: [
    langChain('chat', 'chat', 'deepseek/deepseek-flash', '@langchain/openai'),
    langChain('chat', 'chat', 'openai/gpt-6.1-terra', '@langchain/openai'),
    langChain('responses', 'responses', 'anthropic/claude-haiku-4-5', '@langchain/openai'),
    langChain('messages', 'messages', 'deepseek/deepseek-flash', '@langchain/anthropic'),
    langChain('chat', 'deepseek', 'deepseek/deepseek-flash', '@langchain/deepseek'),
    langChain('chat', 'mistral', 'mistral/mistral-small-latest', '@langchain/mistralai'),
  ],
};

function openaiAgents(protocol: Protocol, model: string): Trial {
  return {
    protocol,
    model,
    versions: ['@openai/agents'],
    calls: readAndWrite,
    launch: (place, page) => {
      const program = page.replaced(page.block('ts', 'readFile'), { 'deepseek/deepseek-flash': model });
      const chat = {
        'setTracingDisabled, tool }': 'setTracingDisabled, setOpenAIAPI, tool }',
        'setTracingDisabled(true);': "setTracingDisabled(true);\nsetOpenAIAPI('chat_completions');",
      };
      return launchProgram(protocol === 'chat' ? page.replaced(program, chat) : program, place);
    },
  };
}

export const openaiAgentsClient: Client = {
  id: 'openai-agents',
  title: 'OpenAI Agents SDK',
  packages: ['@openai/agents', 'openai', 'zod'],
  trials: [
    openaiAgents('responses', 'deepseek/deepseek-flash'),
    openaiAgents('responses', 'openai/gpt-6.1-terra'),
    openaiAgents('responses', 'anthropic/claude-sonnet-5'),
    openaiAgents('chat', 'mistral/mistral-small-latest'),
  ],
};

function openaiSdk(model: string): Trial {
  return {
    protocol: 'chat',
    model,
    versions: ['openai'],
    calls: readAndWrite,
    launch: (place, page) =>
      launchProgram(page.replaced(page.block('ts', 'readFile'), { 'deepseek/deepseek-flash': model }), place),
  };
}

export const openaiSdkClient: Client = {
  id: 'openai-sdk',
  title: 'OpenAI SDK',
  packages: ['openai', 'zod'],
  trials: [
    openaiSdk('deepseek/deepseek-flash'),
    openaiSdk('openai/gpt-6.1-terra'),
    openaiSdk('gemini/gemini-3-flash-preview'),
  ],
};

function anthropicSdk(model: string, refusals: readonly string[] = []): Trial {
  return {
    ...openaiSdk(model),
    protocol: 'messages',
    versions: ['@anthropic-ai/sdk'],
    refusals,
  };
}

export const anthropicSdkClient: Client = {
  id: 'anthropic-sdk',
  title: 'Anthropic SDK',
  packages: ['@anthropic-ai/sdk', 'zod'],
  trials: [
    anthropicSdk('deepseek/deepseek-flash', ['thread_unsupported_request']),
    anthropicSdk('openai/gpt-6.1-terra', ['thread_unsupported_request']),
    anthropicSdk('anthropic/claude-sonnet-5'),
  ],
};
