// CodeMirror, set up once for all editors of the page. Each is in a shadow root, where its styles are adopted sheets,
// which the page's content security policy allows without a nonce.
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { HighlightStyle, StreamLanguage, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from '@codemirror/language';
import { c, cpp, csharp, java, kotlin } from '@codemirror/legacy-modes/mode/clike';
import { go } from '@codemirror/legacy-modes/mode/go';
import { javascript, json, typescript } from '@codemirror/legacy-modes/mode/javascript';
import { python } from '@codemirror/legacy-modes/mode/python';
import { ruby } from '@codemirror/legacy-modes/mode/ruby';
import { rust } from '@codemirror/legacy-modes/mode/rust';
import { shell } from '@codemirror/legacy-modes/mode/shell';
import { yaml } from '@codemirror/legacy-modes/mode/yaml';
import { Compartment, EditorState, type Extension } from '@codemirror/state';
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
import { tags as t } from '@lezer/highlight';
import { h } from './dom';

const languages: [endings: string[], parser: Parameters<typeof StreamLanguage.define>[0]][] = [
  [['py', 'pyi'], python],
  [['js', 'mjs', 'cjs', 'jsx'], javascript],
  [['ts', 'tsx', 'mts'], typescript],
  [['json'], json],
  [['c', 'h'], c],
  [['cpp', 'cc', 'cxx', 'hpp', 'hh'], cpp],
  [['java'], java],
  [['kt'], kotlin],
  [['cs'], csharp],
  [['go'], go],
  [['rs'], rust],
  [['rb'], ruby],
  [['sh', 'bash'], shell],
  [['yml', 'yaml'], yaml],
];

export function language_of(path: string): Extension {
  const ending = path.slice(path.lastIndexOf('.') + 1).toLowerCase();
  const known = languages.find(([endings]) => endings.includes(ending));
  return known === undefined ? [] : StreamLanguage.define(known[1]);
}

const highlight = HighlightStyle.define([
  { tag: [t.keyword, t.operatorKeyword, t.modifier], color: 'var(--code-keyword)' },
  { tag: [t.string, t.special(t.string)], color: 'var(--code-string)' },
  { tag: [t.number, t.bool, t.null, t.atom], color: 'var(--code-number)' },
  { tag: t.comment, color: 'var(--code-comment)', fontStyle: 'italic' },
  { tag: [t.definition(t.variableName), t.function(t.variableName), t.className, t.typeName], color: 'var(--code-name)' },
]);

// Colors are the page's custom properties, which shadow roots inherit.
const look = EditorView.theme({
  '&': { height: '100%', color: 'var(--text)', backgroundColor: 'var(--sheet)', fontSize: '13px' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.5' },
  '.cm-gutters': { backgroundColor: 'var(--sheet)', color: 'var(--faint)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--line-active)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--selection)' },
  '.from': { borderRadius: '2px' },
  '.from-model': { backgroundColor: 'var(--wash-model)', boxShadow: 'inset 0 -2px 0 var(--source-model)' },
  '.from-lookup': { backgroundColor: 'var(--wash-lookup)' },
  '.from-prediction': { backgroundColor: 'var(--wash-prediction)' },
  '.from-draft': { backgroundColor: 'var(--wash-draft)' },
  '.from-program': { backgroundColor: 'var(--wash-program)' },
  '.from-copy': { backgroundColor: 'var(--wash-copy)' },
  '.from-grammar': { backgroundColor: 'var(--wash-grammar)' },
  '.is-added': { boxShadow: 'inset 3px 0 0 var(--added)' },
  '.is-removed': { color: 'var(--removed-text)', backgroundColor: 'var(--removed)', textDecoration: 'line-through', whiteSpace: 'pre', paddingLeft: '6px', boxShadow: 'inset 3px 0 0 var(--removed-edge)' },
  '.is-ghost': { color: 'var(--faint)', fontStyle: 'italic', whiteSpace: 'pre' },
});

export interface Editor {
  view: EditorView;
  host: HTMLElement;
  set_path(path: string): void;
  set_text(text: string): void;
  text(): string;
}

/** An editor. `label` is its name for screen readers. */
export function make_editor(label: string, path: string, text: string, extensions: Extension = [], read_only = false): Editor {
  const host = h('div', { class: 'editor' });
  const root = host.attachShadow({ mode: 'open' });
  const language = new Compartment();
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        extensions,
        lineNumbers(),
        history(),
        drawSelection(),
        bracketMatching(),
        indentOnInput(),
        indentUnit.of('    '),
        syntaxHighlighting(highlight),
        language.of(language_of(path)),
        keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
        EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false', tabindex: '0' }),
        read_only ? [EditorState.readOnly.of(true)] : [highlightActiveLine()],
        look,
      ],
    }),
  });
  return {
    view,
    host,
    set_path: (p) => view.dispatch({ effects: language.reconfigure(language_of(p)) }),
    set_text: (s) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: s } }),
    text: () => view.state.doc.toString(),
  };
}
