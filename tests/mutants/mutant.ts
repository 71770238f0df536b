/** One wrong text for one right one; the right one stands in the file exactly once. */
export type Edit = { file: string; right: string; wrong: string };
export type Mutant = {
  /** What is wrong. */
  name: string;
  edits: Edit[];
  /** The test files of which at least one must notice. */
  tests: string[];
};
