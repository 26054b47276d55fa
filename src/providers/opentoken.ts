/** OpenToken: chat. Its streams always end with a usage chunk, and it ignores `stream_options`. */
import { openaiChat } from '../dialects/openai-chat.ts';
import type { Provider } from './provider.ts';
import { omit } from './request.ts';

export const opentoken: Provider = {
  id: 'opentoken',
  name: 'OpenToken',
  apiKeySetting: 'OPENTOKEN_API_KEY',
  baseUrlSetting: 'OPENTOKEN_BASE_URL',
  defaultBaseUrl: null,
  endpoints: {
    chat: {
      path: () => '/chat/completions',
      body: (body) => omit(body, 'stream_options'),
      dialect: openaiChat,
    },
  },
  quirks: {},
  vendorTokens: () => null,
};
