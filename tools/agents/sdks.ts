/** The SDKs: the programs of their pages. */
import {
  type Client,
  GEMINI_MODELS,
  launchProgram,
  type Page,
  type Protocol,
  readAndWrite,
  type Trial,
} from './client.ts';

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
const AI_OPENROUTER = {
  '@ai-sdk/openai-compatible': '@openrouter/ai-sdk-provider',
  createOpenAICompatible: 'createOpenRouter',
};
const AI_GOOGLE = {
  '@ai-sdk/openai-compatible': '@ai-sdk/google',
  createOpenAICompatible: 'createGoogleGenerativeAI',
};
const AI_OPENAI = { '@ai-sdk/openai-compatible': '@ai-sdk/openai', createOpenAICompatible: 'createOpenAI' };

export const aiSdkClient: Client = {
  id: 'ai-sdk',
  title: 'AI SDK',
  packages: [
    ...['ai', '@ai-sdk/openai-compatible', '@ai-sdk/anthropic', '@ai-sdk/openai', '@ai-sdk/google'],
    ...['@openrouter/ai-sdk-provider', 'zod'],
  ],
  trials: [
    aiSdk('chat', 'deepseek/deepseek-flash', '@ai-sdk/openai-compatible', {}),
    aiSdk('chat', 'openai/gpt-6.1-terra', '@ai-sdk/openai-compatible', {}),
    aiSdk('messages', 'anthropic/claude-sonnet-5', '@ai-sdk/anthropic', AI_ANTHROPIC),
    aiSdk('messages', 'mistral/mistral-small-latest', '@ai-sdk/anthropic', AI_ANTHROPIC),
    aiSdk('responses', 'gemini/gemini-3-flash-preview', '@ai-sdk/openai', AI_OPENAI),
    aiSdk('responses', 'deepseek/deepseek-flash', '@ai-sdk/openai', AI_OPENAI),
    ...GEMINI_MODELS.map((model) => aiSdk('gemini', model, '@ai-sdk/google', AI_GOOGLE)),
    aiSdk('chat', 'openrouter/google/gemini-3-flash-preview', '@openrouter/ai-sdk-provider', AI_OPENROUTER),
    aiSdk('chat', 'deepseek/deepseek-flash', '@openrouter/ai-sdk-provider', AI_OPENROUTER),
  ],
};

/** The page's first block, in which each constant is this model. */
function langChainModels(page: Page, model: string): string {
  return page.block('ts', 'new ChatOpenAI').replaceAll(/model: '[^']+'/g, `model: '${model}'`);
}

/** @param constant the model's name in the page's first block */
function langChain(protocol: Protocol, constant: string, model: string, name: string): Trial {
  return {
    protocol,
    model,
    versions: ['langchain', name],
    calls: readAndWrite,
    launch: (place, page) => {
      const agent = page.replaced(page.block('ts', 'readFile'), { 'model: chat': `model: ${constant}` });
      return launchProgram(`${langChainModels(page, model)}\n${agent}`, place);
    },
  };
}

/** deepagents has tools of its own. */
function deepAgents(model: string): Trial {
  return {
    ...langChain('chat', 'chat', model, '@langchain/openai'),
    versions: ['deepagents', '@langchain/openai'],
    calls: (file_path) => [
      { name: 'read_file', arguments: { file_path } },
      { name: 'edit_file', arguments: { file_path, old_string: '300 cm', new_string: '312 cm' } },
      { name: 'edit_file', arguments: { file_path, old_string: 'calm', new_string: 'rising' } },
      { name: 'read_file', arguments: { file_path } },
    ],
    launch: (place, page) =>
      launchProgram(`${langChainModels(page, model)}\n${page.block('ts', 'createDeepAgent')}`, place),
  };
}

export const langChainClient: Client = {
  id: 'langchain',
  title: 'LangChain',
  packages: [
    ...['langchain', '@langchain/core', '@langchain/openai', '@langchain/anthropic', '@langchain/deepseek'],
    ...['@langchain/mistralai', '@langchain/xai', '@langchain/groq', '@langchain/openrouter', 'deepagents'],
    ...['@langchain/google-genai', '@langchain/google', 'zod'],
  ],
  trials: [
    langChain('chat', 'chat', 'deepseek/deepseek-flash', '@langchain/openai'),
    langChain('chat', 'chat', 'openai/gpt-6.1-terra', '@langchain/openai'),
    langChain('responses', 'responses', 'anthropic/claude-haiku-4-5', '@langchain/openai'),
    langChain('messages', 'messages', 'deepseek/deepseek-flash', '@langchain/anthropic'),
    langChain('chat', 'deepseek', 'deepseek/deepseek-flash', '@langchain/deepseek'),
    langChain('chat', 'mistral', 'mistral/mistral-small-latest', '@langchain/mistralai'),
    langChain('messages', 'messages', 'mistral/mistral-small-latest', '@langchain/anthropic'),
    langChain('chat', 'xai', 'xai/grok-4.7', '@langchain/xai'),
    langChain('chat', 'groq', 'groq/openai/gpt-oss-120b', '@langchain/groq'),
    langChain('chat', 'groq', 'deepseek/deepseek-flash', '@langchain/groq'),
    ...GEMINI_MODELS.map((model) => langChain('gemini', 'genai', model, '@langchain/google-genai')),
    ...GEMINI_MODELS.map((model) => langChain('gemini', 'google', model, '@langchain/google')),
    langChain('chat', 'openrouter', 'openrouter/google/gemini-3-flash-preview', '@langchain/openrouter'),
    langChain('chat', 'openrouter', 'deepseek/deepseek-flash', '@langchain/openrouter'),
    deepAgents('deepseek/deepseek-flash'),
    deepAgents('openai/gpt-6.1-terra'),
    deepAgents('gemini/gemini-3-flash-preview'),
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

/** @param words of the program, if the page has several */
function program(name: string, model: string, protocol: Protocol = 'chat', words = 'readFile'): Trial {
  return {
    protocol,
    model,
    versions: [name],
    calls: readAndWrite,
    launch: (place, page) =>
      launchProgram(page.replaced(page.block('ts', words), { 'deepseek/deepseek-flash': model }), place),
  };
}

export const openaiSdkClient: Client = {
  id: 'openai-sdk',
  title: 'OpenAI SDK',
  packages: ['openai', 'zod'],
  trials: [
    program('openai', 'deepseek/deepseek-flash'),
    program('openai', 'openai/gpt-6.1-terra'),
    program('openai', 'gemini/gemini-3-flash-preview'),
  ],
};

function anthropicSdk(model: string, refusals: readonly string[] = []): Trial {
  return { ...program('@anthropic-ai/sdk', model, 'messages'), refusals };
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

export const openrouterSdkClient: Client = {
  id: 'openrouter-sdk',
  title: 'OpenRouter SDK',
  packages: ['@openrouter/sdk', '@openrouter/agent', 'zod'],
  trials: [
    program('@openrouter/sdk', 'deepseek/deepseek-flash'),
    program('@openrouter/sdk', 'openai/gpt-6.1-terra'),
    program('@openrouter/sdk', 'anthropic/claude-sonnet-5'),
    program('@openrouter/agent', 'deepseek/deepseek-flash', 'responses', 'callModel'),
    program('@openrouter/agent', 'gemini/gemini-3-flash-preview', 'responses', 'callModel'),
  ],
};

export const xsaiClient: Client = {
  id: 'xsai',
  title: 'xsAI',
  packages: ['@xsai/stream-text', '@xsai/tool', 'zod'],
  trials: [
    program('@xsai/stream-text', 'deepseek/deepseek-flash'),
    program('@xsai/stream-text', 'openai/gpt-6.1-terra'),
    program('@xsai/stream-text', 'gemini/gemini-3-flash-preview'),
  ],
};

export const huggingFaceClient: Client = {
  id: 'huggingface',
  title: "Hugging Face's client",
  packages: ['@huggingface/inference'],
  trials: [
    program('@huggingface/inference', 'deepseek/deepseek-flash'),
    program('@huggingface/inference', 'mistral/mistral-small-latest'),
    program('@huggingface/inference', 'anthropic/claude-sonnet-5'),
  ],
};
