/** AWS's regions: the form of their names, and the domain of their hosts. */

/** Such as `us-east-1`, `us-gov-west-1` or `eusc-de-east-1`. */
export const AWS_REGION = /^[a-z]{2,4}(?:-[a-z]{2,9}){1,3}-\d{1,2}$/;

/** China and the European Sovereign Cloud have their own domains. */
export function awsDomain(region: string): string {
  if (region.startsWith('cn-')) return 'amazonaws.com.cn';
  return region.startsWith('eusc-') ? 'amazonaws.eu' : 'amazonaws.com';
}
