// What a router made for vLLM asks of a server: metrics, render, salts.
import assert from "node:assert/strict";
import {after, before, test} from "node:test";
import {Server, edit} from "./redline.mjs";

let server;
before(async () => { server = await Server.start("--compat", "vllm"); });
after(() => server?.kill());

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
