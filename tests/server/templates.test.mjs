// Chat templates given to a server, and answers that continue text of the client. The model's answers are scripted
// (`--script`).
import assert from "node:assert/strict";
import {spawn, spawnSync} from "node:child_process";
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {after, before, test} from "node:test";
import {setTimeout as sleep} from "node:timers/promises";
import {copyWith} from "./gguf.mjs";
import {Pool} from "./pool.mjs";
import {Server, draftModel, program, targetModel} from "./redline.mjs";
import {hermes} from "./tool_templates.mjs";

let folder;
let given;
let named;

const post = async (server, path, body) => {
    const response = await fetch(`${server.url}${path}`, {method: "POST", body: JSON.stringify(body)});
    return {status: response.status, body: await response.json()};
};
const begun = {messages: [{role: "user", content: "Hi"}, {role: "assistant", content: "Hel"}]};
const tools = [{type: "function", function: {name: "read_file", parameters: {type: "object", properties: {path: {type: "string"}}}}}];

before(async () => {
    folder = mkdtempSync(join(tmpdir(), "redline-templates-"));
    const file = join(folder, "mine.jinja");
    writeFileSync(file, "{% for m in messages %}[{{ m.role }}: {{ m.content }}]{% endfor %}" +
                        "{% if add_generation_prompt %}[assistant: {% endif %}");
    const script = join(folder, "script.json");
    writeFileSync(script, JSON.stringify([{when: ["[assistant: Hel"], say: "lo there."}, {when: ["Hi"], say: "Good day."}]));
    given = await Server.start("--chat-template", file, "--script", script);
    const model = join(folder, "both.gguf");
    copyWith(targetModel, model, {"tokenizer.chat_template": "{% for m in messages %}plain {{ m.content }}{% endfor %}",
                                  "tokenizer.chat_template.tool_use": hermes});
    named = await Server.start("--model", model, "--script", script);
});
after(async () => {
    await given?.kill();
    await named?.kill();
    if (folder) rmSync(folder, {recursive: true});
});

test("conversations are written by the template that the server is given", async () => {
    const {body} = await post(given, "/apply-template", {messages: [{role: "user", content: "Hi"}]});
    assert.equal(body.prompt, "[user: Hi][assistant: ");
});

test("the commands that load a model write conversations by the template that they are given", async () => {
    const strict = join(folder, "strict.jinja");
    writeFileSync(strict, "{{ raise_exception('not with this one') }}");
    const edited = join(folder, "a.py");
    writeFileSync(edited, "LIMIT = 10\n");
    const more = ["--model", targetModel, "--chat-template", strict, "-i", "Change the number 10 to 64."];
    for (const args of [["edit", edited, ...more], ["demo", edited, "--draft", draftModel, ...more]]) {
        const done = spawnSync(program, args, {encoding: "utf8"});
        assert.notEqual(done.status, 0, args.join(" "));
        assert.match(done.stderr, /not with this one/, args.join(" "));
    }
    const broken = join(folder, "broken.jinja");
    writeFileSync(broken, "{% if %}");
    const refused = spawnSync(program, ["edit", edited, ...more.with(3, broken)], {encoding: "utf8"});
    assert.match(refused.stderr, /--chat-template .*broken\.jinja: /);
    const editor = spawn(program, ["lsp", "--model", targetModel, "--chat-template", strict], {stdio: ["pipe", "ignore", "ignore"]});
    try {
        for (let words = "", i = 0; !words.includes(`--chat-template\0${strict}\0`); ++i) {
            assert.ok(i < 200, words);
            await sleep(50);
            const own = spawnSync("pgrep", ["-P", `${editor.pid}`], {encoding: "utf8"}).stdout.trim();
            if (own) words = readFileSync(`/proc/${own}/cmdline`, "utf8");
        }
    } finally {
        editor.kill();
    }
});

test("a gateway writes conversations by the template that its worker is given", async () => {
    const pool = new Pool(1);
    try {
        await pool.startBroker(0);
        const gateway = await pool.startGateway();
        pool.startWorker("target", "--chat-template", join(folder, "mine.jinja"));
        await gateway.until(async () => (await fetch(`${gateway.url}/readyz`)).status === 200, 60);
        const {body} = await post(gateway, "/apply-template", {messages: [{role: "user", content: "Hi"}]});
        assert.equal(body.prompt, "[user: Hi][assistant: ");
    } finally {
        await pool.close();
    }
});

test("an answer goes on with the last message where it is asked to, and always for Anthropic's clients", async () => {
    const applied = await post(given, "/apply-template", {...begun, continue_final_message: true});
    assert.equal(applied.body.prompt, "[user: Hi][assistant: Hel");
    const more = {temperature: 0, max_tokens: 40};
    const chat = await post(given, "/v1/chat/completions", {...begun, ...more, continue_final_message: true});
    assert.equal(chat.body.choices[0].message.content, "lo there.");
    const closed = await post(given, "/v1/chat/completions", {messages: [begun.messages[0]], ...more});
    assert.equal(closed.body.choices[0].message.content, "Good day.");
    const claude = await post(given, "/v1/messages", {model: "demo-target", ...begun, ...more});
    assert.equal(claude.body.content[0].text, "lo there.", JSON.stringify(claude.body));
    const refused = await post(given, "/v1/chat/completions", {messages: [begun.messages[0]], continue_final_message: true});
    assert.equal(refused.status, 400);
    assert.equal(refused.body.error.param, "continue_final_message");
});

test("a file's template for tools writes conversations with tools", async () => {
    const plain = await post(named, "/apply-template", {messages: [{role: "user", content: "Hi"}]});
    assert.equal(plain.body.prompt, "plain Hi");
    const with_tools = await post(named, "/v1/chat/completions", {messages: [{role: "user", content: "Hi"}], tools,
                                                                  temperature: 0, max_tokens: 40});
    assert.equal(with_tools.status, 200, JSON.stringify(with_tools.body));
    assert.equal(with_tools.body.choices[0].message.content, "Good day.");
});

test("a grammar that can be read in too many ways ends an answer with an error", async () => {
    const grammar = 'root ::= s{100}\ns ::= s s | "x"';
    const {status, body} = await post(named, "/v1/completions", {prompt: "x", max_tokens: 200, grammar});
    assert.equal(status, 400, JSON.stringify(body));
    assert.match(body.error.message, /more ways than can be followed/);
});
