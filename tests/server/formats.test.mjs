// Prompts in the formats of editors and apply models: the answer is expected from the prompt, without the client's help,
// and that never changes it. The model's answers are scripted (`--script`).
import {after, before, describe, test} from "node:test";
import assert from "node:assert/strict";
import {mkdtempSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {brotliCompressSync} from "node:zlib";
import {Server} from "./redline.mjs";

const region = `def path_of(name):
    """Returns the path of a file."""
    return os.path.join(ROOT, name)


def read(name, limit=LIMIT):
    with open(path_of(name)) as source:
        return source.read()[:limit]`;
const changed = region.replace("ROOT", "BASE");
const snippet = `# ... existing code ...
def read(name, limit=LIMIT):
    with open(path_of(name), "rb") as source:
        return source.read()[:limit]`;
const withSnippet = region.replace("path_of(name))", 'path_of(name), "rb")');
const marked = `${region.slice(0, 30)}<|user_cursor_is_here|>${region.slice(30)}`;

const prompts = {
    "zeta-1": {prompt: "### Instruction:\nRewrite the excerpt.\n\n### User Edits:\n\nUser edited \"store.py\":\n```diff\n-A\n+B\n```\n\n" +
        "### User Excerpt:\n\n```store.py\n<|start_of_file|>\nimport os\n<|editable_region_start|>\n" +
        `${marked}\n<|editable_region_end|>\n\`\`\`\n\n### Response:\n`,
        say: `<|editable_region_start|>\n${changed}\n<|editable_region_end|>`},
    "sweep-1": {prompt: `<|file_sep|>store.py.diff\noriginal:\nA\nupdated:\nB\n<|file_sep|>original/store.py\n${region}\n` +
        `<|file_sep|>current/store.py\n${region}\n<|file_sep|>updated/store.py`,
        say: `\n${changed}\n`},
    "morph": {messages: [{role: "user", content: `<instruction>I read bytes</instruction>\n<code>${region}</code>\n<update>${snippet}</update>`}],
        say: withSnippet},
};

let folder;
let server;
before(async () => {
    folder = mkdtempSync(join(tmpdir(), "formats-"));
    const script = join(folder, "script.json");
    writeFileSync(script, JSON.stringify([
        {when: ["### Response:"], say: prompts["zeta-1"].say},
        {when: ["<|file_sep|>updated/files.py:"], say: changed.slice(changed.indexOf("    return"))},
        {when: ["<|file_sep|>updated/"], say: prompts["sweep-1"].say},
        {when: ["<update>"], say: prompts.morph.say},
    ]));
    server = await Server.start("--script", script);
});
after(async () => {
    await server?.kill();
    rmSync(folder, {recursive: true, force: true});
});

async function ask({prompt, messages}, more = {}) {
    const path = messages ? "/v1/chat/completions" : "/v1/completions";
    const body = {model: "demo-target", temperature: 0, max_tokens: 300, ...(messages ? {messages} : {prompt}), ...more};
    const answer = await fetch(server.url + path, {method: "POST", body: JSON.stringify(body)});
    const said = await answer.json();
    assert.equal(answer.status, 200, JSON.stringify(said));
    return {text: messages ? said.choices[0].message.content : said.choices[0].text, usage: said.usage};
}
const speculation = (more) => ({redline: {speculation: more}});

describe("a prompt in a known format", () => {
    for (const [format, one] of Object.entries(prompts)) {
        test(`of ${format} lets the answer be expected from its first token`, async () => {
            const plain = await ask(one, speculation({method: "regular"}));
            assert.equal(plain.text, one.say);
            assert.equal(plain.usage.redline.recognised, undefined, "no method reads it");
            const without = await ask(one, speculation({recognise: false}));
            const {text, usage} = await ask(one);
            assert.equal(text, plain.text);
            assert.equal(without.text, plain.text);
            assert.equal(without.usage.redline.recognised, undefined);
            const {recognised, sources} = usage.redline;
            assert.equal(recognised.format, format);
            assert.ok(recognised.predicted_tokens > 40);
            assert.equal(recognised.accepted_tokens, sources.format.accepted);
            // How many depends on what passes cost at the moment: the file is in the prompt, and lookup may be as good.
            assert.ok(sources.format.drafted > 0 && recognised.accepted_tokens > 0, JSON.stringify(usage));
            assert.equal(usage.completion_tokens_details.accepted_prediction_tokens, 0, "the client predicted nothing");
        });
    }

    test("with a prediction of the client's own is not recognized", async () => {
        const {text, usage} = await ask(prompts["zeta-1"], {prediction: {type: "content", content: prompts["zeta-1"].say}});
        assert.equal(text, prompts["zeta-1"].say);
        assert.equal(usage.redline.recognised, undefined);
        assert.ok(usage.redline.sources.prediction.accepted > 0);
    });

    test("streams the same text, and says in its usage what was recognized", async () => {
        const body = {model: "demo-target", prompt: prompts["zeta-1"].prompt, temperature: 0, max_tokens: 300, stream: true,
            stream_options: {include_usage: true}};
        const answer = await fetch(`${server.url}/v1/completions`, {method: "POST", body: JSON.stringify(body)});
        const events = (await answer.text()).split("\n\n").map((e) => e.replace(/^(id: .*\n)?data: /, ""))
            .filter((e) => e.startsWith("{")).map((e) => JSON.parse(e));
        assert.equal(events.map((e) => e.choices[0]?.text ?? "").join(""), prompts["zeta-1"].say);
        assert.equal(events.at(-1).usage.redline.recognised.format, "zeta-1");
    });

    test("may be quoted in a question without being recognized", async () => {
        const quoted = `${prompts["zeta-1"].prompt}\n\nWhat does this prompt ask a model to do? `.padEnd(2500, "Tell me more. ");
        const {usage} = await ask({prompt: quoted}, {max_tokens: 8});
        assert.equal(usage.redline.recognised, undefined);
    });
});

describe("the next edit of Sweep's plugins", () => {
    const file = `import os\n\n\n${region}\n`;
    const cursor = file.indexOf("ROOT");
    const next = (more = {}, body) => fetch(`${server.url}/backend/next_edit_autocomplete`, {method: "POST",
        headers: {"content-type": "application/json", "content-encoding": "br"},
        body: body ?? brotliCompressSync(JSON.stringify({repo_name: "files", file_path: "files.py", file_contents: file,
            original_file_contents: file, cursor_position: cursor, use_bytes: true, multiple_suggestions: true, privacy_mode_enabled: true,
            recent_changes: "File: files.py:\n<<<<<<< ORIGINAL\nROOT = 1\n=======\nBASE = 1\n>>>>>>> UPDATED\n", recent_changes_high_res: "",
            file_chunks: [], recent_user_actions: [{action_type: "INSERT_CHAR", line_number: 5, offset: cursor, file_path: "files.py"}],
            retrieval_chunks: [{file_path: "diagnostics", content: "Line 6: ROOT is undefined", start_line: 1, end_line: 1}], ...more}))});

    test("is the range of the file that the model changes", async () => {
        const answer = await next();
        assert.equal(answer.status, 200);
        const lines = (await answer.text()).split("\n");
        assert.deepEqual(lines.slice(1), [""]);
        const {start_index: begin, end_index: end, completion, confidence, autocomplete_id: id} = JSON.parse(lines[0]);
        assert.equal(file.slice(0, begin) + completion + file.slice(end), file.replace("ROOT", "BASE"));
        assert.equal(begin, cursor);
        assert.ok(confidence > 0 && confidence <= 1 && id.length > 8);
    });

    test("says what is wrong, and refuses what a body would become", async () => {
        const refused = await next({cursor_position: 1e6});
        assert.equal(refused.status, 400);
        assert.match((await refused.json()).error.message, /behind the end of 'file_contents', which has \d+ bytes/);
        assert.equal((await next({}, brotliCompressSync("x".repeat(8 << 20)))).status, 413);
        assert.equal((await next({}, "no brotli")).status, 400);
        const report = await fetch(`${server.url}/backend/track_autocomplete_metrics`, {method: "POST", body: "{}"});
        assert.deepEqual([report.status, await report.json()], [200, {}]);
    });
});

test("a server with a method that expects nothing keeps to it, unless the request selects another", async () => {
    const other = await Server.start("--method", "lookup");
    try {
        const at = async (more) => {
            const body = {model: "demo-target", prompt: prompts["zeta-1"].prompt, temperature: 0, max_tokens: 8, ...more};
            return (await (await fetch(`${other.url}/v1/completions`, {method: "POST", body: JSON.stringify(body)})).json()).usage.redline;
        };
        const kept = await at({});
        assert.equal(kept.recognised, undefined);
        assert.equal(kept.sources.format.drafted, 0);
        assert.equal((await at(speculation({method: "prediction"}))).recognised.format, "zeta-1");
    } finally {
        await other.kill();
    }
});

test("a switch that is no boolean is refused", async () => {
    const answer = await fetch(`${server.url}/v1/completions`, {method: "POST",
        body: JSON.stringify({model: "demo-target", prompt: "x", ...speculation({recognise: "no"})})});
    assert.equal(answer.status, 400);
    assert.equal((await answer.json()).error.param, "redline.speculation.recognise");
});
