// Target and draft model in separate processes that are killed while they work; the answers keep the same bytes.
import assert from "node:assert/strict";
import {after, before, test} from "node:test";
import {mkdirSync, mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {Program, Server, draftModel, edit, targetModel} from "./redline.mjs";

const wish = {model: "demo-target", messages: edit, max_tokens: 400, temperature: 0.9, seed: 4,
    redline: {speculation: {method: "blazedit"}}};
let folder;
let server;
let workers;
let expected;

function startWorker(role, ...more) {
    const worker = new Program("worker", "--role", role, "--model", role === "target" ? targetModel : draftModel,
        "--join", `ipc://${folder}/run/bridge`, "--threads", "1", ...more);
    workers[role] = worker;
    return worker;
}

before(async () => {
    const alone = await Server.start("--draft", draftModel);
    expected = (await alone.client().chat.completions.create(wish)).choices[0].message.content;
    await alone.kill();
    folder = mkdtempSync(join(tmpdir(), "redline-"));
    mkdirSync(join(folder, "run"), {mode: 0o700});
    server = await Server.start("--remote", "target,draft", "--bridge", `ipc://${folder}/run/bridge`);
    workers = {};
    startWorker("target");
    startWorker("draft");
    await server.until(async () => (await fetch(`${server.url}/readyz`)).status === 200, 60);
});
after(async () => {
    for (const program of [server, ...Object.values(workers ?? {})]) await program?.kill();
    if (folder) rmSync(folder, {recursive: true, force: true});
});

/** Streams the answer; calls `accident` after the first text. */
async function answerWith(accident = () => {}) {
    let text = "";
    let struck = false;
    for await (const chunk of await server.client().chat.completions.create({...wish, stream: true})) {
        text += chunk.choices[0]?.delta?.content ?? "";
        if (text !== "" && !struck) {
            struck = true;
            await accident();
        }
    }
    return text;
}

test("three processes give the bytes of one", async () => {
    assert.equal(await answerWith(), expected);
});

test("the draft model's process may be killed in the middle of an answer", async () => {
    assert.equal(await answerWith(() => workers.draft.kill()), expected);
    startWorker("draft");
});

test("the target model's process may be killed in the middle of an answer and come back", async () => {
    assert.equal(await answerWith(async () => {
        await workers.target.kill();
        startWorker("target");
    }), expected);
});

test("the server has the context that the target's process has room for", async () => {
    const context = async () => (await (await fetch(`${server.url}/v1/models`)).json()).data[0].max_model_len;
    const before = await context();
    await workers.target.kill();
    startWorker("target", "--kv-mib", "4");
    const [, room] = await workers.target.says(/the KV pool has space for (\d+) tokens/);
    await server.until(async () => (await fetch(`${server.url}/readyz`)).status === 200 && await context() !== before, 60);
    assert.equal(await context(), Number(room));
    assert.equal(await answerWith(), expected);
});
