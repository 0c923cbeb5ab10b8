// The new file as it streams in, colored by source, with the lines that differ from the old file.
import { type Extension, RangeSetBuilder, StateEffect, StateField } from '@codemirror/state';
import { Decoration, type DecorationSet, EditorView, WidgetType } from '@codemirror/view';
import { type Answer } from './answer';
import { once_per_frame } from './dom';
import { type Editor, make_editor } from './editor';
import { differences } from './lines';

class RemovedLines extends WidgetType {
  constructor(readonly lines: readonly string[]) {
    super();
  }
  override eq(other: RemovedLines): boolean {
    return other.lines.length === this.lines.length && other.lines.every((l, i) => l === this.lines[i]);
  }
  override toDOM(): HTMLElement {
    const shown = this.lines.slice(0, 12);
    const element = document.createElement('div');
    for (const line of shown) {
      const row = document.createElement('div');
      row.className = 'is-removed';
      row.textContent = line === '' ? ' ' : line;
      element.append(row);
    }
    if (shown.length < this.lines.length) {
      const more = document.createElement('div');
      more.className = 'is-removed';
      more.textContent = `... ${this.lines.length - shown.length} more lines removed`;
      element.append(more);
    }
    return element;
  }
}

interface Marks {
  colours: DecorationSet;
  lines: DecorationSet;
}
const set_marks = StateEffect.define<Marks>();
const none: Marks = { colours: Decoration.none, lines: Decoration.none };
const marks = StateField.define<Marks>({
  create: () => none,
  update: (value, tr) => {
    for (const e of tr.effects) if (e.is(set_marks)) return e.value;
    return tr.docChanged ? { colours: value.colours.map(tr.changes), lines: value.lines.map(tr.changes) } : value;
  },
  provide: (f) => [EditorView.decorations.from(f, (v) => v.colours), EditorView.decorations.from(f, (v) => v.lines)],
});

const added = Decoration.line({ class: 'is-added' });
const of_source = new Map<string, Decoration>();
function mark_of(source: string): Decoration {
  const known = of_source.get(source) ?? Decoration.mark({ class: `from from-${source.replace(/[^a-z]/g, '')}` });
  of_source.set(source, known);
  return known;
}

export class ResultView {
  readonly editor: Editor;
  private answer: Answer | null = null;
  private old_lines: string[] = [];
  private shown = 0;
  private readonly paint = once_per_frame(() => this.draw());

  constructor(extensions: Extension = []) {
    this.editor = make_editor('The new file', '', '', [marks, extensions], true);
  }

  begin(path: string, old_text: string): void {
    this.answer = null;
    this.shown = 0;
    this.old_lines = old_text.split('\n');
    this.editor.set_path(path);
    this.editor.view.dispatch({ changes: { from: 0, to: this.editor.view.state.doc.length }, effects: set_marks.of(none) });
  }

  show(answer: Answer): void {
    this.answer = answer;
    this.paint();
  }

  /** Shows the whole of a finished answer at once. */
  settle(): void {
    this.draw();
  }

  /** The number of changed lines, for the summary; covers the whole answer after `settle`. */
  changed_lines = 0;

  private draw(): void {
    if (this.answer === null) return;
    const { from, to } = this.answer.file();
    const text = this.answer.content.slice(from, to);
    const { view } = this.editor;
    // A fence may prove to end the file, or not to, which takes text back. Otherwise text is only appended.
    const keep = text.startsWith(view.state.doc.sliceString(0, this.shown)) ? this.shown : 0;
    const follows = view.scrollDOM.scrollTop + view.scrollDOM.clientHeight > view.scrollDOM.scrollHeight - 40;
    const doc_length = view.state.doc.length;
    view.dispatch({ changes: { from: keep, to: doc_length, insert: text.slice(keep) } });
    this.shown = text.length;
    view.dispatch({ effects: set_marks.of({ colours: this.colours(from, text.length), lines: this.line_marks(text) }) });
    if (follows) view.scrollDOM.scrollTop = view.scrollDOM.scrollHeight;
  }

  private colours(from: number, length: number): DecorationSet {
    const builder = new RangeSetBuilder<Decoration>();
    for (const span of this.answer!.spans) {
      const begin = Math.max(0, span.from - from);
      const end = Math.min(length, span.to - from);
      if (begin < end) builder.add(begin, end, mark_of(span.source));
    }
    return builder.finish();
  }

  private line_marks(text: string): DecorationSet {
    const finished = this.answer!.finish_reason !== null;
    const lines = text.split('\n');
    // The line that is still being written is compared once it is complete.
    const whole = finished ? lines : lines.slice(0, -1);
    const changes = differences(this.old_lines, whole, !finished);
    const builder = new RangeSetBuilder<Decoration>();
    if (changes === null) return builder.finish();
    const { doc } = this.editor.view.state;
    this.changed_lines = changes.reduce((n, c) => n + Math.max(c.a_to - c.a_from, c.b_to - c.b_from), 0);
    for (const c of changes) {
      const at = doc.line(Math.min(c.b_from + 1, doc.lines)).from;
      if (c.a_to > c.a_from) {
        builder.add(at, at, Decoration.widget({ widget: new RemovedLines(this.old_lines.slice(c.a_from, c.a_to)), block: true, side: -1 }));
      }
      for (let line = c.b_from; line < c.b_to && line < doc.lines; ++line) {
        const { from } = doc.line(line + 1);
        builder.add(from, from, added);
      }
    }
    return builder.finish();
  }
}
