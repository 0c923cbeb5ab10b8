// The official OpenAI client against one server, as a new user would use it.
import assert from "node:assert/strict";
import {after, before, describe, test} from "node:test";
import {request as httpRequest} from "node:http";
import OpenAI from "openai";
import {Server, draftModel, edit, exampleConfig, file} from "./redline.mjs";

const methods = ["regular", "lookup", "assisted", "blazedit", "prediction", "auto"];
const tokensMax = 40;  // fewer than the edit takes
let server;
let client;

before(async () => {
    // Whole drafts: passes are counted below, and draft widths would depend on the machine's load.
    server = await Server.start("--draft", draftModel, "--draft-length", "whole");
    client = server.client();
});
after(() => server?.kill("SIGKILL"));

const ask = (more = {}) => ({model: "demo-target", messages: edit, max_tokens: tokensMax, temperature: 0, ...more});
const using = (method) => ({redline: {speculation: {method}}});
const bodyOf = async (response) => JSON.parse(await response.text());
const post = (path, body, headers = {}) =>
    fetch(server.url + path, {method: "POST", headers: {"content-type": "application/json", ...headers}, body});

async function gather(stream) {
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    return chunks;
}
const textOf = (chunks) => chunks.map((c) => c.choices[0]?.delta?.content ?? "").join("");

describe("models", () => {
    test("lists the model it serves and tells about it", async () => {
        const list = await client.models.list();
        assert.deepEqual(list.data.map((m) => m.id), ["demo-target"]);
        assert.equal((await client.models.retrieve("demo-target")).object, "model");
        await assert.rejects(client.models.retrieve("gpt-9"), OpenAI.NotFoundError);
    });
});

describe("chat", () => {
    test("answers with content, a reason and true counts", async () => {
        const answer = await client.chat.completions.create(ask());
        assert.equal(answer.object, "chat.completion");
        assert.match(answer.id, /^chatcmpl-/);
        assert.equal(answer.choices[0].message.role, "assistant");
        assert.equal(answer.choices[0].finish_reason, "length");
        assert.equal(answer.usage.completion_tokens, tokensMax);
        assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + tokensMax);
        assert.match(answer.system_fingerprint, /^redline-/);
    });

    test("forgets whole turns of a conversation that is too long for its window", async () => {
        const old = [{role: "user", content: "What is a list? ".repeat(20)}, {role: "assistant", content: "A list. ".repeat(30)}];
        const window = (n_ctx) => ({redline: {eviction: {policy: "reevaluate", n_ctx}}});
        const alone = await client.chat.completions.create(ask({max_tokens: 20}));
        const left = alone.usage.prompt_tokens;
        const cut = await client.chat.completions.create(ask({messages: [...old, ...edit], max_tokens: 20, ...window(left + 40)}));
        assert.equal(cut.choices[0].message.content, alone.choices[0].message.content);
        assert.equal(cut.usage.prompt_tokens, left);
        assert.equal(cut.usage.redline.evictions, 1);
        assert.ok(cut.usage.redline.evicted > 200);
        await assert.rejects(client.chat.completions.create(ask({messages: [...old, ...edit], ...window(left)})),
            (e) => e.status === 400 && e.code === "context_length_exceeded" && /without its older turns/.test(e.message));
    });

    test("streams the same text in chunks of one id, role first, reason last, usage when asked", async () => {
        const whole = await client.chat.completions.create(ask());
        const chunks = await gather(await client.chat.completions.create(
            ask({stream: true, stream_options: {include_usage: true}})));
        assert.equal(textOf(chunks), whole.choices[0].message.content);
        assert.equal(new Set(chunks.map((c) => c.id)).size, 1);
        assert.equal(new Set(chunks.map((c) => c.created)).size, 1);
        assert.equal(chunks[0].choices[0].delta.role, "assistant");
        assert.equal(chunks.at(-2).choices[0].finish_reason, "length");
        assert.deepEqual(chunks.at(-1).choices, []);
        assert.equal(chunks.at(-1).usage.completion_tokens, tokensMax);
        for (const chunk of chunks.slice(0, -1)) assert.equal(chunk.usage, null);
    });

    test("ends the event stream with [DONE]", async () => {
        const response = await post("/v1/chat/completions", JSON.stringify(ask({stream: true, max_tokens: 3})));
        assert.match(response.headers.get("content-type"), /^text\/event-stream/);
        assert.ok((await response.text()).endsWith("data: [DONE]\n\n"));
    });

    for (const temperature of [0, 0.8]) {
        test(`says the same with every drafting method at temperature ${temperature}`, async () => {
            const texts = new Set();
            for (const method of methods) {
                const answer = await client.chat.completions.create(ask({temperature, seed: 11, ...using(method)}));
                texts.add(answer.choices[0].message.content);
            }
            assert.equal(texts.size, 1);
        });
    }

    test("samples by seed", async () => {
        const say = async (seed) =>
            (await client.chat.completions.create(ask({temperature: 2, seed}))).choices[0].message.content;
        assert.equal(await say(5), await say(5));
        assert.notEqual(await say(5), await say(6));
    });

    test("stops before a stop string that spans tokens, streaming or not", async () => {
        const whole = (await client.chat.completions.create(ask())).choices[0].message.content;
        const stop = whole.slice(20, 29);
        const expected = whole.slice(0, whole.indexOf(stop));
        const answer = await client.chat.completions.create(ask({stop: [stop]}));
        assert.equal(answer.choices[0].message.content, expected);
        assert.equal(answer.choices[0].finish_reason, "stop");
        const chunks = await gather(await client.chat.completions.create(ask({stop, stream: true})));
        assert.equal(textOf(chunks), expected);
    });

    test("gives log probabilities, most probable first", async () => {
        const answer = await client.chat.completions.create(ask({max_tokens: 5, logprobs: true, top_logprobs: 3}));
        const content = answer.choices[0].logprobs.content;
        assert.equal(content.length, 5);
        for (const token of content) {
            assert.equal(token.top_logprobs.length, 3);
            assert.equal(token.top_logprobs[0].logprob, token.logprob);  // greedy
            assert.ok(token.top_logprobs[1].logprob <= token.top_logprobs[0].logprob);
            assert.deepEqual(Buffer.from(token.bytes).toString(), token.token);
        }
    });

    test("answers several times in one request", async () => {
        const answer = await client.chat.completions.create(ask({n: 3, temperature: 1, seed: 3, max_tokens: 12}));
        assert.deepEqual(answer.choices.map((c) => c.index), [0, 1, 2]);
        assert.equal(answer.usage.completion_tokens, 36);
    });

    test("serves sixteen streams at once as if each were alone", async () => {
        const wishes = Array.from({length: 16}, (_, i) =>
            ask({max_tokens: 24, temperature: i % 2, seed: i, ...using(methods[i % methods.length])}));
        const alone = [];
        for (const wish of wishes) alone.push((await client.chat.completions.create(wish)).choices[0].message.content);
        const together = await Promise.all(wishes.map(async (wish) =>
            textOf(await gather(await client.chat.completions.create({...wish, stream: true})))));
        assert.deepEqual(together, alone);
    });
});

describe("answers under a grammar", () => {
    const schema = {type: "object", additionalProperties: false, required: ["name", "count", "tags"], properties: {
        name: {type: "string", maxLength: 12}, count: {type: "integer", minimum: 0, maximum: 99},
        tags: {type: "array", items: {enum: ["a", "b"]}, maxItems: 3}}};
    const format = (schema) => ({response_format: {type: "json_schema", json_schema: {name: "thing", strict: true, schema}}});
    const fits = (text) => {
        const thing = JSON.parse(text);
        assert.deepEqual(Object.keys(thing), ["name", "count", "tags"]);
        assert.ok([...thing.name].length <= 12);
        assert.ok(Number.isInteger(thing.count) && thing.count >= 0 && thing.count <= 99);
        assert.ok(thing.tags.length <= 3 && thing.tags.every((tag) => tag === "a" || tag === "b"));
    };

    for (const temperature of [0, 1.5]) {
        test(`hold to a JSON schema at temperature ${temperature}, the same with and without drafts, streaming or not`, async () => {
            const wish = ask({...format(schema), temperature, seed: 4, max_tokens: 1500});
            const plain = await client.chat.completions.create({...wish, ...using("regular")});
            assert.equal(plain.choices[0].finish_reason, "stop");
            fits(plain.choices[0].message.content);
            const chunks = await gather(await client.chat.completions.create({...wish, ...using("auto"), stream: true}));
            assert.equal(textOf(chunks), plain.choices[0].message.content);
        });
    }

    test("are refused with the keyword's name where a schema asks for what is not known", async () => {
        await assert.rejects(client.chat.completions.create(ask(format({type: "array", items: {type: "integer"}, uniqueItems: true}))), (error) => {
            assert.ok(error instanceof OpenAI.BadRequestError);
            assert.match(error.message, /uniqueItems/);
            return true;
        });
    });

    test("are programs over files whose text is what they resolve to", async () => {
        const lines = file.split("\n").length - 1;
        for (const copy of ["forced", "verified", "auto", {trust: "auto", anchors: true}, {trust: "forced", spans: "tokens"}]) {
            const wish = ask({max_tokens: 600, redline: {copy, files: [file], speculation: {method: "regular"}}});
            const answer = await client.chat.completions.create(wish);
            const {program, spans} = answer.choices[0].redline;
            assert.match(program, /^(<copy [^>]*\/>|<gen>[^]*?<\/gen>)*<\/program>$/);
            const trusts = {forced: ["forced"], verified: ["verified"]}[copy.trust ?? copy] ?? ["forced", "verified"];
            for (const span of spans) {
                assert.ok(trusts.includes(span.trust));
                assert.ok(["option", "anchors", "confidence", "doubt"].includes(span.reason));
                if (span.unit === "lines") assert.ok(1 <= span.first && span.first <= span.last && span.last <= lines);
            }
            // Resolves the program by hand: the result must be what the client got.
            if (spans.every((span) => span.unit === "lines")) {
                let text = "";
                const old = file.split(/(?<=\n)/);
                for (const [, first, last, gen] of program.matchAll(/<copy lines="(\d+)-(\d+)"\/>|<gen>([^]*?)<\/gen>/g)) {
                    text += first ? old.slice(first - 1, last).join("") : gen;
                }
                assert.equal(answer.choices[0].message.content, text);
            }
            const chunks = await gather(await client.chat.completions.create(
                {...wish, redline: {...wish.redline, speculation: {method: "lookup"}}, stream: true}));
            assert.equal(textOf(chunks), answer.choices[0].message.content);
            assert.deepEqual(chunks.findLast((c) => c.choices[0]?.redline).choices[0].redline, answer.choices[0].redline);
        }
    });
});

describe("predicted outputs", () => {
    const predict = (content) => ({prediction: {type: "content", content}});
    const sourcesAddUp = ({completion_tokens, completion_tokens_details: details, redline}) => {
        const all = Object.values(redline.sources);
        const sum = (key) => all.reduce((n, source) => n + source[key], 0);
        assert.equal(sum("drafted"), redline.drafted);
        assert.equal(sum("accepted"), redline.accepted);
        assert.equal(details.accepted_prediction_tokens, redline.sources.prediction.accepted);
        assert.equal(details.accepted_prediction_tokens + details.rejected_prediction_tokens,
            redline.sources.prediction.drafted);
        assert.ok(redline.accepted <= completion_tokens);
    };

    for (const temperature of [0, 0.8]) {
        test(`give the same text in fewer passes, with true counts, at temperature ${temperature}`, async () => {
            const wish = {temperature, seed: 11};
            const plain = await client.chat.completions.create(ask({...wish, ...using("regular")}));
            const text = plain.choices[0].message.content;
            assert.equal(plain.usage.completion_tokens_details.accepted_prediction_tokens, 0);
            assert.equal(plain.usage.completion_tokens_details.rejected_prediction_tokens, 0);
            const right = await client.chat.completions.create(ask({...wish, ...predict(text)}));
            assert.equal(right.choices[0].message.content, text);
            sourcesAddUp(right.usage);
            assert.ok(right.usage.completion_tokens_details.accepted_prediction_tokens >= 10);
            assert.ok(right.usage.redline.target_passes < plain.usage.redline.target_passes / 4);
            const others = [[file], ["nothing of the kind"], [""], [[{type: "text", text: text.slice(0, 40)},
                {type: "text", text: text.slice(40)}]]];
            for (const method of ["auto", "prediction"]) {
                for (const [content] of others) {
                    const answer = await client.chat.completions.create(
                        ask({...wish, ...predict(content), ...using(method)}));
                    assert.equal(answer.choices[0].message.content, text);
                    sourcesAddUp(answer.usage);
                }
            }
        });
    }

    test("that are wrong are counted as rejected, and cost no byte", async () => {
        // The prompt has nothing to look up instead.
        const wish = ask({messages: [{role: "user", content: "Write a function."}]});
        const plain = await client.chat.completions.create({...wish, ...using("regular")});
        const wrong = await client.chat.completions.create(
            {...wish, ...predict("nothing of the kind"), ...using("prediction")});
        assert.equal(wrong.choices[0].message.content, plain.choices[0].message.content);
        sourcesAddUp(wrong.usage);
        assert.ok(wrong.usage.completion_tokens_details.rejected_prediction_tokens > 0);
    });

    test("stream, and count in the metrics", async () => {
        const accepted = () => server.metric("redline_spec_accepted_total");
        const before = await accepted();
        const plain = await client.chat.completions.create(ask(using("regular")));
        assert.equal(await accepted(), before);
        const chunks = await gather(await client.chat.completions.create(
            ask({stream: true, stream_options: {include_usage: true}, ...predict(plain.choices[0].message.content)})));
        assert.equal(textOf(chunks), plain.choices[0].message.content);
        const {usage} = chunks.at(-1);
        sourcesAddUp(usage);
        assert.equal(await accepted() - before, usage.redline.accepted);
        const metrics = await (await fetch(`${server.url}/metrics`)).text();
        for (const source of ["lookup", "draft", "prediction"]) {
            assert.match(metrics, new RegExp(`^redline_spec_drafted_total\\{source="${source}"\\} \\d+$`, "m"));
        }
    });

    test("are for completions too, and for each of several answers", async () => {
        const wish = {model: "demo-target", prompt: `\`\`\`python\n${file}\`\`\`\n\`\`\`python\n`, max_tokens: 40, temperature: 0, n: 2};
        const plain = await client.completions.create({...wish, ...using("regular")});
        const predicted = await client.completions.create({...wish, ...predict(plain.choices[0].text)});
        assert.deepEqual(predicted.choices.map((c) => c.text), plain.choices.map((c) => c.text));
        sourcesAddUp(predicted.usage);
    });
});

describe("completions", () => {
    test("takes a prompt as text, texts, tokens and lists of tokens", async () => {
        const create = (prompt) => client.completions.create({model: "demo-target", prompt, max_tokens: 8, temperature: 0});
        const text = "def add(a, b):";
        const {tokens} = await bodyOf(await post("/tokenize", JSON.stringify({content: text})));
        const one = (await create(text)).choices[0].text;
        assert.equal((await create(tokens)).choices[0].text, one);
        assert.deepEqual((await create([text, text])).choices.map((c) => c.text), [one, one]);
        assert.deepEqual((await create([tokens, tokens])).choices.map((c) => c.text), [one, one]);
    });

    test("streams and gives log probabilities", async () => {
        const wish = {model: "demo-target", prompt: "import ", max_tokens: 6, temperature: 0};
        const whole = await client.completions.create({...wish, logprobs: 2});
        assert.equal(whole.object, "text_completion");
        assert.equal(whole.choices[0].logprobs.tokens.length, 6);
        assert.equal(whole.choices[0].logprobs.tokens.join(""), whole.choices[0].text);
        const chunks = await gather(await client.completions.create({...wish, stream: true}));
        assert.equal(chunks.map((c) => c.choices[0]?.text ?? "").join(""), whole.choices[0].text);
    });
});

describe("errors", () => {
    const cases = [
        ["a temperature out of range", {temperature: 9}, "temperature"],
        ["a number where text belongs", {stop: 5}, "stop"],
        ["messages that are no list", {messages: "hello"}, "messages"],
        ["a negative limit", {max_tokens: -3}, "max_tokens"],
        ["a prediction that is no object", {prediction: "x"}, "prediction"],
        ["a prediction of another type", {prediction: {type: "tokens", content: "x"}}, "prediction.type"],
        ["a prediction without text", {prediction: {type: "content", content: 5}}, "prediction.content"],
        ["a prediction longer than the context", {prediction: {type: "content", content: "x = 1\n".repeat(3000)}},
            "prediction.content"],
        ["an unknown drafting method", {redline: {speculation: {method: "magic"}}}, "redline.speculation.method"]
    ];
    for (const [name, change, param] of cases) {
        test(`refuses ${name} and names the field`, async () => {
            await assert.rejects(client.chat.completions.create(ask(change)), (error) => {
                assert.ok(error instanceof OpenAI.BadRequestError, String(error));
                assert.equal(error.param, param);
                assert.equal(error.type, "invalid_request_error");
                return true;
            });
        });
    }

    test("refuses a prompt that is longer than the context before generating", async () => {
        const long = [{role: "user", content: "x = 1\n".repeat(3000)}];
        await assert.rejects(client.chat.completions.create(ask({messages: long})), (error) => {
            assert.equal(error.status, 400);
            assert.equal(error.code, "context_length_exceeded");
            return true;
        });
    });

    test("refuses unknown models, paths and methods", async () => {
        await assert.rejects(client.chat.completions.create(ask({model: "gpt-9"})), (error) => {
            assert.ok(error instanceof OpenAI.NotFoundError);
            assert.equal(error.code, "model_not_found");
            return true;
        });
        assert.equal((await fetch(`${server.url}/v1/nothing`)).status, 404);
        assert.equal((await fetch(`${server.url}/v1/chat/completions`)).status, 405);
        assert.equal((await post("/v1/embeddings", "{}")).status, 400);
    });

    test("refuses bodies that are no JSON, no UTF-8 or too large", async () => {
        for (const body of ["{", "[]", "", Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])]) {
            const response = await post("/v1/chat/completions", body);
            assert.equal(response.status, 400, String(body));
            assert.equal((await bodyOf(response)).error.type, "invalid_request_error");
        }
        const huge = JSON.stringify(ask({messages: [{role: "user", content: "x".repeat(40 << 20)}]}));
        const answered = await post("/v1/chat/completions", huge).then((r) => r.status, () => "closed");
        assert.ok(answered === 413 || answered === "closed", String(answered));
        assert.equal((await fetch(`${server.url}/readyz`)).status, 200);
    });

    test("takes the hints of other servers' clients and names those that nothing follows", async () => {
        const answer = await client.chat.completions.create(ask({
            max_tokens: 4, service_tier: "flex", reasoning_effort: "low", verbosity: "low", samplers: "edkypmxt", id_slot: 0,
            cache_prompt: true, chat_template_kwargs: {enable_thinking: false}}));
        assert.deepEqual(answer.usage.redline.ignored.sort(), ["chat_template_kwargs.enable_thinking", "id_slot",
            "reasoning_effort", "samplers", "service_tier", "verbosity"]);
    });

    test("gives the most probable of several answers", async () => {
        const wish = {model: "demo-target", prompt: "def add(a, b):\n", max_tokens: 8, temperature: 1, seed: 5, logprobs: 0};
        const mean = ({logprobs: {token_logprobs: all}}) => all.reduce((a, b) => a + b) / all.length;
        const all = (await client.completions.create({...wish, n: 5})).choices;
        const best = (await client.completions.create({...wish, n: 2, best_of: 5})).choices;
        const wanted = all.toSorted((a, b) => mean(b) - mean(a)).slice(0, 2).map((c) => c.text);
        assert.deepEqual(best.map((c) => c.text), wanted);
        assert.deepEqual(best.map((c) => c.index), [0, 1]);
    });

    test("echoes the prompt, streamed and whole", async () => {
        const wish = {model: "demo-target", prompt: ["def add(a, b):\n", "x = 1\n"], max_tokens: 4, temperature: 0};
        const plain = await client.completions.create(wish);
        const echoed = await client.completions.create({...wish, echo: true});
        assert.deepEqual(echoed.choices.map((c) => c.text), plain.choices.map((c, i) => wish.prompt[i] + c.text));
        const texts = ["", ""];
        for (const chunk of await gather(await client.completions.create({...wish, echo: true, stream: true}))) {
            for (const c of chunk.choices) texts[c.index] += c.text;
        }
        assert.deepEqual(texts, echoed.choices.map((c) => c.text));
    });

    test("says what was used in every event, with ids, as vLLM's clients ask", async () => {
        const chunks = await gather(await client.completions.create({model: "demo-target", prompt: "x = 1\n", max_tokens: 6,
            temperature: 0, stream: true, return_token_ids: true,
            stream_options: {include_usage: true, continuous_usage_stats: true}}));
        const ids = chunks.flatMap((c) => c.choices[0]?.token_ids ?? []);
        assert.equal(ids.length, 6);
        let seen = 0;
        for (const chunk of chunks.filter((c) => c.choices.length > 0)) {
            assert.ok(chunk.usage.completion_tokens >= seen && chunk.usage.prompt_tokens > 0);
            seen = chunk.usage.completion_tokens;
        }
        assert.equal(chunks.at(-1).usage.completion_tokens, 6);
    });

    test("keeps to the tokens that are allowed, and computes a prompt without an answer", async () => {
        const wish = {model: "demo-target", prompt: "x = 1\n".repeat(40), temperature: 0};
        const {tokens} = await bodyOf(await post("/tokenize", JSON.stringify({content: "ab"})));
        const held = await client.completions.create({...wish, max_tokens: 5, allowed_token_ids: tokens, return_token_ids: true});
        assert.ok(held.choices[0].token_ids.every((t) => tokens.includes(t)));
        const warmed = await client.completions.create({...wish, prompt: `# ${wish.prompt}`, max_tokens: 0});
        assert.equal(warmed.choices[0].text, "");
        assert.equal(warmed.usage.completion_tokens, 0);
        const next = await client.completions.create({...wish, prompt: `# ${wish.prompt}`, max_tokens: 1});
        assert.ok(next.usage.prompt_tokens_details.cached_tokens > 0);
    });

    test("gives every answer a request id and echoes a good one", async () => {
        const response = await fetch(`${server.url}/v1/models`, {headers: {"x-request-id": "mine-1"}});
        assert.equal(response.headers.get("x-request-id"), "mine-1");
        assert.match((await fetch(`${server.url}/v1/models`)).headers.get("x-request-id"), /^req-/);
    });
});

describe("clients that leave", () => {
    // Answers that end only by length: the model cannot end them.
    let ends;
    before(async () => {
        const {tokens} = await bodyOf(await post("/tokenize", JSON.stringify({content: "<|im_end|><|endoftext|>"})));
        ends = Object.fromEntries(tokens.map((token) => [token, -100]));
        assert.equal(tokens.length, 2, "end tokens of the demo model");
    });
    const endless = () => ask({max_tokens: 1500, temperature: 1.5, seed: 7, logit_bias: ends, stream: true, ...using("regular")});
    const free = () => server.until(async () => await server.metric("redline_answers_running") === 0 &&
        await server.metric("redline_kv_pages_held") === 0);

    test("an aborted stream frees its place", async () => {
        const stream = await client.chat.completions.create(endless());
        for await (const chunk of stream) {
            if (chunk.choices[0]?.delta?.content) break;  // leaving the loop aborts the request
        }
        await free();
    });

    test("a socket that vanishes frees its place, streaming or not", async () => {
        for (const stream of [true, false]) {
            await new Promise((resolve, reject) => {
                const url = new URL(`${server.url}/v1/chat/completions`);
                const request = httpRequest({host: url.hostname, port: url.port, path: url.pathname, method: "POST",
                    headers: {"content-type": "application/json"}});
                request.on("error", () => {}).on("close", resolve);
                request.end(JSON.stringify({...endless(), stream}));
                server.until(async () => await server.metric("redline_answers_running") > 0)
                    .then(() => request.destroy(new Error("gone")), reject);
            });
            await free();
        }
    });
});

describe("beside the completions", () => {
    test("tokenize and detokenize are inverse", async () => {
        for (const text of ["def f(x):\n\treturn x", "naïve 文字 🙂", ""]) {
            const {tokens} = await bodyOf(await post("/tokenize", JSON.stringify({content: text})));
            const {content} = await bodyOf(await post("/detokenize", JSON.stringify({tokens})));
            assert.equal(content, text);
        }
    });

    test("metrics advance", async () => {
        const before = await server.metric("redline_rows_total");
        await client.chat.completions.create(ask({max_tokens: 4}));
        await server.until(async () => await server.metric("redline_rows_total") > before);
    });

    test("serves every path with and without /v1", async () => {
        for (const path of ["/models", "/v1/models", "/health", "/livez", "/readyz"]) {
            assert.equal((await fetch(server.url + path)).status, 200, path);
        }
    });
});

describe("a long prompt", () => {
    test("is answered with headers and a role before it is read", async () => {
        const long = [{role: "user", content: "x = 1\n".repeat(550)}];
        const waiting = [];
        // Other answers keep the server busy, so that the prompt waits for its turn.
        for (let i = 0; i < 4; ++i) waiting.push(client.chat.completions.create(ask({messages: [{role: "user", content: `${i}` + "y = 2\n".repeat(550)}]})));
        const stream = await client.chat.completions.create(ask({messages: long, stream: true, max_tokens: 2}));
        let begun = false;
        for await (const chunk of stream) {
            if (!begun) assert.equal(chunk.choices[0].delta.content, "", "the role comes before any text");
            begun = true;
        }
        assert.ok(begun);
        await Promise.all(waiting);
    });
});

describe("a guarded, narrow server", () => {
    const keyedMetric = async (of, series) => {
        const text = await (await fetch(`${of.url}/metrics`, {headers: {authorization: "Bearer secret-key-1"}})).text();
        return Number(text.split("\n").find((line) => line.startsWith(series + " "))?.split(" ").at(-1));
    };
    let narrow;
    before(async () => {
        // Flags take precedence over the example configuration, which the program must accept.
        narrow = await Server.start("--config", exampleConfig, "--api-key", "team:secret-key-1", "--running-max", "1", "--waiting-max", "1",
            // Sanitizers make an answer twenty times slower.
            "--shutdown-timeout", "600");
    });
    after(() => narrow?.kill());

    test("lets in who has the key", async () => {
        await assert.rejects(narrow.client({apiKey: "wrong-key-1"}).models.list(), OpenAI.AuthenticationError);
        assert.equal((await narrow.client({apiKey: "secret-key-1"}).models.list()).data.length, 1);
    });

    test("answers 429 with a time to wait when the queue is full, and serves again later", async () => {
        const mine = narrow.client({apiKey: "secret-key-1"});
        const answers = await Promise.allSettled(Array.from({length: 6}, (_, i) =>
            mine.chat.completions.create(ask({max_tokens: 300, temperature: 1.5, seed: i}))));
        const refused = answers.filter((a) => a.status === "rejected").map((a) => a.reason);
        assert.ok(refused.length > 0 && refused.length < 6, `${refused.length} of 6 refused`);
        for (const error of refused) {
            assert.ok(error instanceof OpenAI.RateLimitError, String(error));
            assert.equal(error.code, "queue_full");
            const headers = error.headers;
            assert.ok(Number(headers.get?.("retry-after") ?? headers["retry-after"]) > 0);
        }
        // The test accepts any refusing part; the client's own retries count too.
        assert.equal(await keyedMetric(narrow, 'redline_refused_total{code="queue_full",status="429"}'), refused.length);
        await mine.chat.completions.create(ask({max_tokens: 2}));
    });

    test("on SIGTERM finishes what it began, is live but not ready, and ends well", async () => {
        const mine = narrow.client({apiKey: "secret-key-1"});
        const stream = await mine.chat.completions.create(
            ask({max_tokens: 400, stream: true, temperature: 1.5, seed: 1, ...using("regular")}));
        let reason = null;
        let signalled = false;
        for await (const chunk of stream) {
            reason = chunk.choices[0]?.finish_reason ?? reason;
            if (signalled || !chunk.choices[0]?.delta?.content) continue;
            signalled = true;
            const ready = await fetch(`${narrow.url}/readyz`);
            assert.equal(ready.status, 200);
            narrow.child.kill("SIGTERM");
            await narrow.says(/draining/);
            assert.equal((await fetch(`${narrow.url}/livez`)).status, 200);
            const drained = await fetch(`${narrow.url}/readyz`);
            assert.equal(drained.status, 503);
            assert.equal(drained.headers.get("connection"), "close");
        }
        assert.ok(reason === "length" || reason === "stop", String(reason));
        assert.equal((await narrow.exited).code, 0);
    });
});
