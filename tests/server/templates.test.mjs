// The chat template that a server is given, and answers that go on with what the client began. What the model says is
// scripted (`--script`).
import assert from "node:assert/strict";
import {mkdtempSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {after, before, test} from "node:test";
import {copyWith} from "./gguf.mjs";
import {Server, targetModel} from "./redline.mjs";
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
    const grammar = 'root ::= a a a a a a a a\na ::= "x" | "x" a "y" | "x" a a';
    const {status, body} = await post(named, "/v1/completions", {prompt: "x", max_tokens: 60, grammar});
    assert.equal(status, 400, JSON.stringify(body));
    assert.match(body.error.message, /more ways than are followed/);
});
