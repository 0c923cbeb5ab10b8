// The requests of editors' plugins according to their sources (November 2026), and what plugins read in answers.
import assert from "node:assert/strict";
import {after, before, describe, test} from "node:test";
import {Server, edit} from "./redline.mjs";

let server;
before(async () => {
    server = await Server.start("--alias", "demo", "--alias", "qwen2.5-coder:temperature=0");
});
after(() => server?.kill("SIGKILL"));

const post = async (path, body) => {
    const response = await fetch(server.url + path,
        {method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify(body)});
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return text;
};
const ask = async (path, body) => JSON.parse(await post(path, body));
const events = async (path, body) => (await post(path, {...body, stream: true})).split("\n")
    .filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));

const head = "import json\n\n\ndef load(path):\n    with open(path) as source:\n";
const tail = "\n\n\ndef save(path, value):\n    with open(path, \"w\") as target:\n        json.dump(value, target)\n";

describe("llama.vim and llama.vscode", () => {
    const infill = (more = {}) => ({
        id_slot: 0, input_prefix: head, input_suffix: tail, input_extra: [{text: "LIMIT = 10\n", time: 1, filename: "limits.py"}],
        prompt: "        ", n_predict: 16, stop: [], n_indent: 8, top_k: 40, top_p: 0.9, stream: false,
        samplers: ["top_k", "top_p", "infill"], cache_prompt: true, t_max_prompt_ms: 500, t_max_predict_ms: 10000, ...more});

    test("fill the middle and read times and counts by their paths", async () => {
        const answer = await ask("/infill", infill({response_fields: ["content", "timings/prompt_n", "timings/prompt_ms",
            "timings/prompt_per_second", "timings/predicted_n", "timings/predicted_ms", "timings/predicted_per_second",
            "truncated", "tokens_cached"]}));
        assert.equal(typeof answer.content, "string");
        assert.equal(Object.keys(answer).length, 9);
        assert.ok(answer["timings/prompt_n"] > 0 && answer["timings/predicted_n"] <= 16);
        assert.equal(answer.truncated, false);
    });

    test("warm the cache with n_predict 0, and the next request goes on from there", async () => {
        const extra = [{text: "def helper(value):\n    return value + 1\n".repeat(20), time: 2, filename: "helpers.py"}];
        const warm = await ask("/infill", {id_slot: 0, input_prefix: "", input_suffix: "", input_extra: extra, prompt: "",
            n_predict: 0, temperature: 0, samplers: [], cache_prompt: true, t_max_prompt_ms: 1, t_max_predict_ms: 1,
            response_fields: [""], stream: false});
        assert.deepEqual(warm, {});
        const next = await ask("/infill", infill({input_extra: extra}));
        assert.ok(next.timings.cache_n > 100, JSON.stringify(next.timings));
    });

    test("go on from the cached pages when the cursor moves", async () => {
        const text = Array.from({length: 120}, (_, i) => `value_${i * 7919 % 1009} = compute(${i}, "name")\n`);
        const at = (line) => infill({input_prefix: text.slice(0, line).join(""), input_suffix: "\n", input_extra: [], n_predict: 1});
        await ask("/infill", at(100));
        const {timings} = await ask("/infill", at(101));
        assert.ok(timings.cache_n > timings.prompt_n, JSON.stringify(timings));
    });

    test("get several answers as a list, and the same bytes in a stream", async () => {
        const list = await ask("/infill", infill({n_cmpl: 2, temperature: 1, seed: 3}));
        assert.equal(list.length, 2);
        const whole = await ask("/infill", infill({n_predict: 8}));
        const parts = (await events("/infill", infill({n_predict: 8}))).map((e) => JSON.parse(e));
        assert.equal(parts.map((p) => p.content).join(""), whole.content);
        assert.deepEqual(parts.map((p) => p.stop), [...parts.slice(1).map(() => false), true]);
        assert.equal(parts.at(-1).stop_type, whole.stop_type);
    });

    test("hold an answer to a grammar", async () => {
        const grammar = `root ::= "[" item ("," item)* "]"\nitem ::= [a-z]{1,8} | "(" root ")"`;
        const wanted = /^\[[a-z()[\],]*\]$/;
        const native = await ask("/completion", {prompt: head, n_predict: 60, grammar, temperature: 0, seed: 3});
        const stopped = native.stop_type === "eos";
        assert.match(stopped ? native.content : `${native.content}]`, wanted);
        for (const more of [{guided_grammar: grammar}, {structured_outputs: {grammar}}]) {
            const {text, finish_reason} = (await ask("/v1/completions",
                {model: "demo", prompt: head, max_tokens: 60, temperature: 0, ...more})).choices[0];
            assert.equal(text, native.content);
            assert.equal(finish_reason, stopped ? "stop" : "length");
        }
        // Drafts do not change the answer.
        const plain = await ask("/v1/completions", {model: "demo", prompt: head, max_tokens: 60, temperature: 0, grammar,
                                                    redline: {speculation: {method: "regular"}}});
        assert.equal(plain.choices[0].text, native.content);
        const held = async (text) => (await ask("/v1/completions",
            {model: "demo", prompt: head, max_tokens: 40, temperature: 1, seed: 5, grammar: text})).choices[0];
        assert.match((await held(`root ::= root "a" | "b"`)).text, /^ba*$/);
        const sum = await held(`// Lark's own form\nstart: sum ";"\nsum: NUMBER | sum "+" NUMBER\nNUMBER: /[0-9]{1,3}/`);
        assert.match(sum.finish_reason === "stop" ? sum.text : `${sum.text.replace(/[+]$/, "")};`, /^[0-9]{1,3}(\+[0-9]{1,3})*;$/);
        const wrong = await fetch(`${server.url}/v1/completions`, {method: "POST", headers: {"content-type": "application/json"},
            body: JSON.stringify({model: "demo", prompt: head, grammar: `root ::= "" root "a" | "b" absent`})});
        assert.equal(wrong.status, 400);
        const {error} = await wrong.json();
        assert.equal(error.param, "grammar");
        assert.match(error.message, /absent/);
    });

    test("see which answers are in progress", async () => {
        const slots = async () => await (await fetch(`${server.url}/slots`)).json();
        assert.ok((await slots()).every((slot, i) => slot.id === i && slot.is_processing === false && slot.n_ctx >= 4096));
        const stream = await fetch(`${server.url}/v1/completions`, {method: "POST", headers: {"content-type": "application/json"},
            body: JSON.stringify({model: "demo", prompt: head, max_tokens: 2000, ignore_eos: true, stream: true})});
        const reader = stream.body.getReader();
        await reader.read();
        const [busy, ...rest] = await slots();
        await reader.cancel();
        assert.equal(busy.is_processing, true);
        assert.equal(typeof busy.id_task, "number");
        assert.equal(busy.params.n_predict, 2000);
        assert.equal(busy.next_token[0].n_decoded + busy.next_token[0].n_remain, 2000);
        assert.ok(rest.every((slot) => !slot.is_processing) && !JSON.stringify(busy).includes("load"));
    });

    test("read the server's properties and its models", async () => {
        const props = await (await fetch(`${server.url}/props`)).json();
        assert.ok(props.default_generation_settings.n_ctx >= 4096 && props.total_slots > 0);
        assert.equal(typeof props.chat_template, "string");
        const models = await (await fetch(`${server.url}/v1/models`)).json();
        assert.equal(models.data[0].meta.n_ctx, props.default_generation_settings.n_ctx);
        assert.equal(models.data[0].status.value, "loaded");
        assert.deepEqual(models.data[0].architecture.input_modalities, ["text"]);
        assert.equal(models.models[0].name, "demo");
        assert.equal(typeof (await (await fetch(`${server.url}/version`)).json()).version, "string");
    });

    test("edit a selection by chat with their sampler hints", async () => {
        const answer = await ask("/v1/chat/completions", {id_slot: 0, samplers: "edkypmxt", cache_prompt: true, min_p: 0.1,
            max_tokens: 4, temperature: 0, messages: [{role: "user", content: "x"}], response_fields: ["content"]});
        assert.equal(answer.choices.length, 1);
    });
});

describe("Tabby", () => {
    test("streams llama.cpp/completion and openai/completion", async () => {
        const native = (await events("/completion", {seed: 4294967295, prompt: head, n_predict: 8, temperature: 0.1,
            penalty_last_n: 0, presence_penalty: 0})).map((e) => JSON.parse(e));
        assert.equal(native.at(-1).stop, true);
        const openai = await events("/v1/completions", {model: "demo", prompt: head, suffix: tail, max_tokens: 8,
            temperature: 0.1, presence_penalty: 0});
        assert.equal(openai.at(-1), "[DONE]");
    });
});

describe("minuet-ai.nvim and Continue", () => {
    test("send a suffix, or Mistral's FIM call", async () => {
        const gap = {prompt: head, suffix: tail, max_tokens: 8, temperature: 0};
        const {text} = (await ask("/v1/completions", {model: "demo", n: 1, ...gap})).choices[0];
        const fim = await ask("/v1/fim/completions", {model: "demo", ...gap});
        assert.equal(fim.choices[0].message.content, text);
        const deltas = (await events("/v1/fim/completions", {model: "demo", ...gap})).slice(0, -1).map((e) => JSON.parse(e));
        assert.equal(deltas.map((d) => d.choices[0]?.delta.content ?? "").join(""), text);
        const infill = await ask("/infill", {input_prefix: head, input_suffix: tail, n_predict: 8});
        assert.equal(infill.content, text, "one prompt, whatever the shape");
    });

    test("complete with all of Continue's stop strings", async () => {
        const answer = await ask("/v1/completions", {model: "demo", prompt: `<|fim_prefix|>${head}<|fim_suffix|>${tail}<|fim_middle|>`,
            max_tokens: 8, temperature: 0.01, stop: ["<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
                "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|im_start|>", "<|im_end|>", "/src/", "#- coding: utf-8",
                "```", "\n\n", "\r\n\r\n"]});
        assert.equal(typeof answer.choices[0].text, "string");
    });
});

describe("Zed", () => {
    test("asks without a temperature by a name that says what the model is", async () => {
        const wish = {model: "qwen2.5-coder", prompt: `<|fim_prefix|>${head}<|fim_suffix|>${tail}<|fim_middle|>`,
            max_tokens: 12, stop: ["<|endoftext|>", "<|file_sep|>", "<|repo_name|>", "<|fim_pad|>"], environment: null};
        const first = await ask("/v1/completions", wish);
        const second = await ask("/v1/completions", wish);
        assert.equal(second.choices[0].text, first.choices[0].text, "greedy, by the alias");
        assert.equal(typeof first.id, "string");
        const greedy = await ask("/v1/completions", {...wish, model: "demo", temperature: 0});
        assert.equal(first.choices[0].text, greedy.choices[0].text);
    });
});

describe("what measures servers and chats with them", () => {
    const chat = {model: "demo", messages: edit, max_tokens: 4, temperature: 0, stream: true};
    const all = {stream_options: {include_usage: true, continuous_usage_stats: true}};

    test("GuideLLM, AIPerf and vllm bench serve count tokens in every event", async () => {
        const {messages: _, ...plain} = chat;
        for (const [path, body] of [["/v1/completions", {...plain, prompt: head, max_completion_tokens: 4, stop: null, ignore_eos: true}],
                                    ["/v1/completions", {...plain, prompt: head, repetition_penalty: 1.0, logprobs: null, ignore_eos: true}],
                                    ["/v1/chat/completions", {...chat, ignore_eos: true}],
                                    ["/v1/chat/completions", {...chat, min_tokens: 4, ignore_eos: true}]]) {
            const list = await events(path, {...body, ...all});
            assert.equal(list.at(-1), "[DONE]");
            assert.equal(JSON.parse(list.at(-2)).usage.completion_tokens, 4);
        }
    });

    test("lm-eval generates, and asks for the probabilities of prompts", async () => {
        const wish = {model: "demo", prompt: [head], max_tokens: 4, temperature: 0, seed: 1234};
        assert.equal((await ask("/v1/completions", {...wish, stop: ["\n\n"]})).choices.length, 1);
        const tokens = async (content) => (await ask("/tokenize", {content})).tokens;
        const prompts = [await tokens(head), await tokens("x = 1\ny = 2\n"), await tokens("a")];
        const scored = {...wish, prompt: prompts, max_tokens: 1, logprobs: 1, echo: true};
        const {choices, usage} = await ask("/v1/completions", scored);
        assert.equal(usage.prompt_tokens_details.cached_tokens, 0);
        assert.equal(choices.length, prompts.length);
        for (const [i, {text, logprobs}] of choices.entries()) {
            assert.equal(logprobs.tokens.length, prompts[i].length + 1);
            assert.equal(logprobs.tokens.join(""), text);
            assert.equal(logprobs.token_logprobs[0], null);
            assert.equal(logprobs.top_logprobs[0], null);
            // lm-eval adds them up in this way, and checks whether a text is the greedy one.
            for (const [at, logprob] of logprobs.token_logprobs.entries()) {
                assert.equal(text.slice(0, logprobs.text_offset[at]), logprobs.tokens.slice(0, at).join(""));
                if (at > 0) assert.ok(logprob <= Math.max(...Object.values(logprobs.top_logprobs[at])));
            }
        }
        // The model's own text has the same probabilities as a prompt, whatever is cached of it.
        const written = (await ask("/v1/completions", {...wish, logprobs: 1, return_token_ids: true})).choices[0];
        const whole = {...scored, prompt: [[...prompts[0], ...written.token_ids]]};
        for (const round of [1, 2]) {
            const {token_logprobs, top_logprobs} = (await ask("/v1/completions", whole)).choices[0].logprobs;
            assert.deepEqual(token_logprobs.slice(prompts[0].length, -1), written.logprobs.token_logprobs, `round ${round}`);
            for (const [at, logprob] of token_logprobs.slice(prompts[0].length, -1).entries())
                assert.equal(logprob, Math.max(...Object.values(top_logprobs[prompts[0].length + at])));
        }
        // The same as a stream, with no tokens generated, and in vLLM's field.
        const list = await events("/v1/completions", {...scored, prompt: prompts[0], max_tokens: 0, stream: true});
        const parts = list.filter((e) => e !== "[DONE]").map((e) => JSON.parse(e).choices[0].logprobs).filter((p) => p);
        assert.deepEqual(parts.flatMap((p) => p.token_logprobs), choices[0].logprobs.token_logprobs.slice(0, -1));
        const one = (await ask("/v1/completions", {...wish, prompt: prompts[0], prompt_logprobs: 2})).choices[0].prompt_logprobs;
        assert.equal(one[0], null);
        assert.deepEqual(one.slice(1).map((entry, i) => entry[prompts[0][i + 1]].logprob),
            choices[0].logprobs.token_logprobs.slice(1, -1));
        const chatted = await ask("/v1/chat/completions", {model: "demo", max_tokens: 1, messages: [{role: "user", content: "a"}], prompt_logprobs: 0});
        assert.equal(chatted.prompt_logprobs.length, chatted.usage.prompt_tokens);
    });

    test("Morph's clients send a file and its update in one message", async () => {
        const content = "<instruction>Raise it.</instruction>\n<code>LIMIT = 10\n</code>\n<update>LIMIT = 64\n</update>";
        const answer = await ask("/v1/chat/completions", {model: "demo", max_tokens: 4, messages: [{role: "user", content}]});
        assert.equal(answer.choices.length, 1);
    });

    test("Open WebUI and aider chat, and Copilot finds an Ollama", async () => {
        assert.equal((await events("/v1/chat/completions", {...chat, stream_options: {include_usage: true}})).at(-1), "[DONE]");
        assert.match((await (await fetch(`${server.url}/api/version`)).json()).version, /^\d/);
        const [{model}] = (await (await fetch(`${server.url}/api/tags`)).json()).models;
        assert.ok((await ask("/api/show", {model})).capabilities.includes("completion"));
    });
});
