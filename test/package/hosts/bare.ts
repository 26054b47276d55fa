/** Weir as the complete Worker, without features. */
import { weir } from 'weir-gateway';

export default weir({ basePath: '/ai', auth: 'keys' }) satisfies ExportedHandler;
