// The sources of tokens, in one order and one set of colors everywhere.

export interface Source {
  name: string;
  label: string;
  means: string;
}

export const sources: Source[] = [
  { name: 'model', label: 'model', means: 'the target model chose it in a pass' },
  { name: 'lookup', label: 'lookup', means: 'found earlier in the prompt or the answer' },
  { name: 'prediction', label: 'prediction', means: 'the old file, sent as the expected answer' },
  { name: 'draft', label: 'draft model', means: 'the small model proposed it' },
  { name: 'program', label: 'program', means: 'how edit programs and tool calls usually continue' },
  { name: 'copy', label: 'copy', means: 'a span that an edit program copied' },
  { name: 'grammar', label: 'grammar', means: 'the grammar left no choice' },
];

export const source_named = (name: string): Source => sources.find((s) => s.name === name) ?? sources[0]!;
