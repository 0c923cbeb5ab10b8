// Next-edit clients, by the requests that they send: VS Code's (which sends the edit window as its prediction) and Sweep's,
// by prompt and by file. The model's answers are scripted.
import assert from "node:assert/strict";
import {mkdtempSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {brotliCompressSync} from "node:zlib";
import {after, before, test} from "node:test";
import OpenAI from "openai";
import {Server} from "./redline.mjs";

const above = "import shelf\n\n\n";
const edited = `def place_of(book, most=LIMIT):
    """Returns where a book stands."""
    for place in shelf.places(most):
        if place.holds(book):
            return place
    return None`;
const next = edited.replace("None", "shelf.floor()");
const tags = {unified: `<EDIT>\n${next}\n</EDIT>`, fenced: `\`\`\`python\n${next}\n\`\`\``};

// The user's turn of VS Code's next edits, with the tags of its sources.
const copilot = (closing) => [
    {role: "system", content: "Your role is to predict the developer's next edit."},
    {role: "user", content: "```\n<|recently_viewed_code_snippets|>\n\n<|/recently_viewed_code_snippets|>\n\n" +
        `<|current_file_content|>\ncurrent_file_path: books.py\n${above}${edited}\n<|/current_file_content|>\n\n` +
        "<|edit_diff_history|>\n--- books.py\n+++ books.py\n@@ -3,1 +3,1 @@\n-def place_of(book):\n+def place_of(book, most=LIMIT):\n<|/edit_diff_history|>\n\n" +
        `<|area_around_code_to_edit|>\n${above}<|code_to_edit|>\n${edited.replace("most=", "most=<|cursor|>")}\n<|/code_to_edit|>\n<|/area_around_code_to_edit|>\n\`\`\`\n\n${closing}`},
];

let folder, server, client;
before(async () => {
    folder = mkdtempSync(join(tmpdir(), "next-edits-"));
    writeFileSync(join(folder, "script.json"), JSON.stringify([
        {when: ["<EDIT>"], say: tags.unified}, {when: ["<|code_to_edit|>"], say: tags.fenced},
        {when: ["<|file_sep|>updated/"], say: next.slice(next.indexOf("\n") + 1)}]));
    server = await Server.start("--script", join(folder, "script.json"));
    client = new OpenAI({baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0});
});
after(async () => {
    await server?.kill();
    rmSync(folder, {recursive: true, force: true});
});

async function streamed(body) {
    let text = "", usage;
    for await (const event of await client.chat.completions.create({model: "demo-target", temperature: 0, stream: true,
        stream_options: {include_usage: true}, max_tokens: 300, ...body})) {
        text += event.choices[0]?.delta?.content ?? "";
        usage ??= event.usage;
    }
    return {text, usage};
}

test("VS Code's next edit gets its answer, and its prediction is used", async () => {
    const messages = copilot("Answer with <EDIT>, the code to edit as it is after the next edit, and </EDIT>.");
    const content = `<EDIT>\n${edited}\n</EDIT>`;
    const {text, usage} = await streamed({messages, prediction: {type: "content", content}});
    assert.equal(text, tags.unified);
    assert.ok(usage.completion_tokens_details.accepted_prediction_tokens > 20, JSON.stringify(usage));
    assert.equal(usage.redline.recognised, undefined, "the client's own prediction is used");
});

test("VS Code's next edit without a prediction is recognized", async () => {
    const messages = copilot("Rewrite the code between <|code_to_edit|> and <|/code_to_edit|> in one code fence.");
    const {text, usage} = await streamed({messages});
    assert.equal(text, tags.fenced);
    assert.match(usage.redline.recognised.format, /^copilot-/);
});

test("Sweep's prompt of February 2026 is recognized", async () => {
    const window = `books.py:4:9\n`;
    const marked = edited.replace("most=", "most=<|cursor|>");
    const first = edited.slice(0, edited.indexOf("\n") + 1);
    const prompt = `<|file_sep|>books.py\n${above}${edited}\n<|file_sep|>books.py.diff\noriginal:\ndef place_of(book):\nupdated:\n${first}` +
        `<|file_sep|>original/${window}${edited}\n<|file_sep|>current/${window}${marked}\n<|file_sep|>updated/${window}${first}`;
    const answer = await client.completions.create({model: "demo-target", prompt, temperature: 0, max_tokens: 300, stop: ["<|file_sep|>", "<|endoftext|>"]});
    assert.equal(answer.choices[0].text, next.slice(first.length));
    assert.equal(answer.usage.redline.recognised.format, "sweep-2");
});

test("Sweep's request with the file gets the range to replace", async () => {
    const file = `${above}${edited}\n`;
    const answer = await fetch(`${server.url}/backend/next_edit_autocomplete`, {method: "POST",
        headers: {"content-type": "application/json", "content-encoding": "br", "x-ide-name": "Neovim", "x-plugin-version": "0.1.0"},
        body: brotliCompressSync(JSON.stringify({repo_name: "books", file_path: "books.py", file_contents: file, original_file_contents: file,
            cursor_position: file.indexOf("    \"\"\""), recent_changes: "", recent_changes_high_res: "", changes_above_cursor: false,
            multiple_suggestions: false, use_bytes: true, privacy_mode_enabled: true, file_chunks: [], recent_user_actions: [], retrieval_chunks: []}))});
    assert.equal(answer.status, 200);
    const {start_index: begin, end_index: end, completion} = JSON.parse(await answer.text());
    assert.equal(file.slice(0, begin) + completion + file.slice(end), file.replace("None", "shelf.floor()"));
});
