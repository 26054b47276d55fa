/** The feature `privacy`: everything that is stored about one user is exported or erased. */
import type { FeatureModule } from '../feature.ts';
import type { Feature } from '../types.ts';
import { stepAll } from './kv-erasures.ts';
import { PRIVACY_ROUTES } from './routes.ts';
import { stepErasure } from './steps.ts';

/** Adds the admin routes that export and erase one user, in the stores of all listed features. */
export function privacy(): Feature<'privacy'> {
  const feature: FeatureModule<'privacy'> = {
    name: 'privacy',
    configure: () => ({
      routes: PRIVACY_ROUTES,
      start: () => ({
        stepErasure,
        scheduled: async (_dueAt, ownContext) => {
          const work: Promise<unknown>[] = [];
          const context = ownContext((one) => work.push(one));
          // Objects take their steps themselves.
          if (context.userData.erasures !== undefined) return;
          await stepAll(context);
          await Promise.allSettled(work);
        },
      }),
    }),
  };
  return feature;
}
