/** Style sheets are bundled as text (see build.mjs) and travel inside the scripts. */
declare module "*.css" {
  const text: string;
  export default text;
}
