// What a router made for vLLM requests from a server: metrics, render, salts.
import assert from "node:assert/strict";
import {spawn, spawnSync} from "node:child_process";
import {mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {createInterface} from "node:readline";
import {after, before, test} from "node:test";
import {setTimeout as sleep} from "node:timers/promises";
import {Server, edit, program, targetModel} from "./redline.mjs";

let server, folder, subscriber;
before(async () => {
    folder = mkdtempSync(join(tmpdir(), "redline-events-"));
    const [events, replay] = ["events", "replay"].map((name) => `ipc://${folder}/${name}`);
    server = await Server.start("--compat", "vllm", "--kv-events", events, "--kv-events-replay", replay);
    subscriber = new Subscriber(events, replay);
});
after(async () => {
    subscriber?.end();
    await server?.kill();
    rmSync(folder, {recursive: true, force: true});
});

/** Another implementation of readers for ZeroMQ and msgpack. */
class Subscriber {
    constructor(...endpoints) {
        this.lines = [];
        this.child = spawn("/usr/bin/python3", [new URL("kv_events.py", import.meta.url).pathname, ...endpoints],
            {stdio: ["pipe", "pipe", "inherit"]});
        createInterface({input: this.child.stdout}).on("line", (line) => this.lines.push(JSON.parse(line)));
    }
    async until(what) {
        for (let i = 0; i < 400; ++i) {
            const found = this.lines.find(what);
            if (found) return found;
            await sleep(50);
        }
        throw new Error(`never came: ${what}; found ${JSON.stringify(this.lines).slice(0, 2000)}`);
    }
    batches() { return this.lines.filter((line) => line.topic); }
    /** Returns the batches that the server replays from this number on. */
    async replay(number) {
        const before = this.lines.length;
        this.child.stdin.write(`${number}\n`);
        await this.until((line) => line.replayed !== undefined && this.lines.indexOf(line) >= before);
        return this.lines.slice(before).filter((line) => line.topic === null);
    }
    end() { this.child.stdin.end(); }
}

const post = async (path, body, headers = {}) => fetch(server.url + path,
    {method: "POST", headers: {"content-type": "application/json", ...headers}, body: JSON.stringify(body)});
const chat = {model: "demo-target", messages: edit, max_tokens: 4, temperature: 0};

test("render gives the tokens that the answer is computed from", async () => {
    const rendered = await (await post("/v1/chat/completions/render", chat)).json();
    const tokenized = await (await post("/tokenize", {model: "demo-target", messages: edit})).json();
    assert.deepEqual(rendered.token_ids, tokenized.tokens);
    const answer = await (await post("/v1/chat/completions", chat)).json();
    assert.equal(answer.usage.prompt_tokens, rendered.token_ids.length);
    const texts = await (await post("/v1/completions/render", {model: "demo-target", prompt: ["def a():", [1, 2, 3]]})).json();
    assert.equal(texts.length, 2);
    assert.deepEqual(texts[1].token_ids, [1, 2, 3]);
    assert.equal((await post("/v1/chat/completions/render", {...chat, model: "another"})).status, 404);
});

test("metrics have vLLM's names and our numbers", async () => {
    const text = await (await fetch(`${server.url}/metrics`)).text();
    const value = (name) => Number(text.match(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "m"))[1]);
    for (const [theirs, ours] of [["vllm:generation_tokens_total", "redline_generation_tokens_total"],
        ["vllm:prefix_cache_queries_total", "redline_queried_prompt_tokens_total"],
        ["vllm:prefix_cache_hits_total", "redline_cached_prompt_tokens_total"],
        ["vllm:num_requests_waiting", "redline_requests_waiting"]]) {
        assert.equal(value(theirs), value(ours), theirs);
    }
    assert.ok(value("vllm:generation_tokens_total") >= 4);
    assert.ok(value("vllm:prefix_cache_hits_total") <= value("vllm:prefix_cache_queries_total"));
    assert.equal(value("vllm:kv_cache_usage_perc"), value("redline_kv_usage_ratio"));
    assert.match(text, /^vllm:cache_config_info\{.*block_size="32".*\} 1$/m);
    assert.match((await (await fetch(`${server.url}/version`)).json()).version, /^\d+\./);
});

test("a salt keeps the KV of prompts apart, and changes no answer", async () => {
    const ask = async (cache_salt) => {
        const response = await post("/v1/chat/completions", {...chat, ...(cache_salt && {cache_salt})}, {"x-request-id": "from-a-router"});
        assert.equal(response.headers.get("x-request-id"), "from-a-router");
        return response.json();
    };
    const cached = (answer) => answer.usage.prompt_tokens_details.cached_tokens;
    await ask();
    const known = await ask();
    assert.ok(cached(known) >= 32);
    const salted = await ask("one");
    assert.equal(cached(salted), 0);
    assert.equal(cached(await ask("two")), 0);
    assert.equal(cached(await ask("one")), cached(known));
    assert.equal(cached(await ask()), cached(known));
    assert.equal(salted.choices[0].message.content, known.choices[0].message.content);
});

test("KV events say which beginnings of prompts are kept, and can be had again", async () => {
    await subscriber.until((line) => line.ready);
    // Until it has subscribed it misses events, so each question caches something new.
    const isHeard = () => subscriber.batches().length > 0;
    for (let i = 0; !isHeard(); ++i) {
        await post("/v1/completions", {prompt: `${i}: ${"knock ".repeat(40)}`, max_tokens: 1});
        await sleep(100);
    }
    const prompt = `def unheard_of():\n${"    pass\n".repeat(60)}`;
    const [{token_ids: tokens}] = await (await post("/v1/completions/render", {prompt: [prompt]})).json();
    await post("/v1/completions", {prompt, max_tokens: 1});
    const stored = (line) => line.topic && line.batch[1].some(([tag, , , ids]) => tag === "BlockStored" && ids.length >= 64 &&
        ids.every((id, at) => id === tokens[at]));
    const batch = await subscriber.until(stored);
    assert.match(batch.topic, /^kv@127.0.0.1:0@demo-target$/);
    assert.equal(batch.batch[2], 0);
    const [, hashes, parent, ids, size, adapter, medium] = batch.batch[1].find(([tag]) => tag === "BlockStored");
    assert.deepEqual([parent, size, adapter, medium], [null, 32, null, "GPU"]);
    assert.equal(hashes.length * size, ids.length);
    assert.ok(tokens.length - ids.length < 2 * 32, "all whole pages but the last token's");
    // A continuation names its parent.
    const longer = `${prompt}${"    return 1\n".repeat(40)}`;
    await post("/v1/completions", {prompt: longer, max_tokens: 1});
    await subscriber.until((line) => line.topic && line.batch[1].some(([tag, , before]) => tag === "BlockStored" && hashes.includes(before)));
    // The numbers have no gap, and the replay gives the same batches.
    const all = subscriber.batches();
    all.forEach((one, at) => assert.equal(one.number, all[0].number + at));
    const again = await subscriber.replay(all[0].number);
    assert.deepEqual(again.slice(0, all.length).map((one) => one.batch), all.map((one) => one.batch));
    const whole = await subscriber.replay(0);
    assert.equal(whole[0].number, 0);
    assert.deepEqual(whole[0].batch[1], [["AllBlocksCleared"]], "the first word of a server");
    // A prompt with a salt is not shared.
    const known = subscriber.batches().length;
    await post("/v1/completions", {prompt: `salted ${"x ".repeat(200)}`, max_tokens: 1, cache_salt: "s"});
    await post("/v1/completions", {prompt: `then ${"y ".repeat(200)}`, max_tokens: 1});
    await subscriber.until((line) => line.topic && subscriber.batches().indexOf(line) >= known);
    const [{token_ids: salted}] = await (await post("/v1/completions/render", {prompt: [`salted ${"x ".repeat(200)}`]})).json();
    for (const one of await subscriber.replay(0)) {
        for (const [tag, , , some] of one.batch[1]) assert.ok(tag !== "BlockStored" || some[0] !== salted[0] || some[1] !== salted[1]);
    }
});

test("KV events are for those who may read prompts: no tcp unless it is asked for by name", () => {
    const refused = (...more) => {
        const ended = spawnSync(program, ["serve", "--model", targetModel, "--listen", "127.0.0.1:0", ...more], {encoding: "utf8"});
        assert.notEqual(ended.status, 0);
        return ended.stderr;
    };
    assert.match(refused("--kv-events", "tcp://127.0.0.1:5557"), /insecure-plaintext/);
    assert.match(refused("--kv-events-replay", `ipc://${folder}/x`), /require --kv-events/);
});
