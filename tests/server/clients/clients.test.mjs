// Third-party clients, unmodified, against one server, each used as its own documentation shows.
import assert from "node:assert/strict";
import {after, before, describe, test} from "node:test";
import {createOpenAI} from "@ai-sdk/openai";
import {createOpenAICompatible} from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import {constructLlmApi} from "@continuedev/openai-adapters";
import {ChatOpenAI} from "@langchain/openai";
import {OpenAI as LlamaIndexOpenAI} from "@llamaindex/openai";
import {Agent, OpenAIProvider, Runner} from "@openai/agents";
import {generateText, streamText} from "ai";
import {Ollama} from "ollama";
import OpenAI6 from "openai";
import OpenAI7 from "openai-7";
import {Server, draftModel, edit} from "./redline.mjs";

const model = "demo-target";
const tokensMax = 12;
let server;
let expected;  // the model's answer, which every client must get

before(async () => {
    server = await Server.start("--draft", draftModel);
    const answer = await server.client().chat.completions.create({model, messages: edit, max_tokens: tokensMax, temperature: 0});
    expected = answer.choices[0].message.content;
    assert.ok(expected.length > 0);
});
after(() => server?.kill("SIGKILL"));

const prompt = edit[0].content;

async function gather(stream) {
    const all = [];
    for await (const one of stream) all.push(one);
    return all;
}

for (const [name, OpenAI] of [["openai 6", OpenAI6], ["openai 7", OpenAI7]]) {
    describe(name, () => {
        const client = () => new OpenAI({baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0});

        test("answers as a response, whole", async () => {
            const response = await client().responses.create({model, input: prompt, max_output_tokens: tokensMax, temperature: 0});
            assert.equal(response.output_text, expected);
            assert.equal(response.status, "incomplete");
            assert.equal(response.incomplete_details.reason, "max_output_tokens");
            assert.equal(response.usage.output_tokens, tokensMax);
            assert.equal(response.store, false);
        });

        test("answers as a response, in events that are numbered in order", async () => {
            const events = await gather(await client().responses.create(
                {model, instructions: "Be brief.", input: [{role: "user", content: [{type: "input_text", text: "hi"}]}],
                 max_output_tokens: tokensMax, temperature: 0, stream: true}));
            assert.deepEqual(events.map((e) => e.sequence_number), events.map((_, i) => i));
            const kinds = events.map((e) => e.type);
            assert.deepEqual(kinds.slice(0, 4), ["response.created", "response.in_progress", "response.output_item.added",
                "response.content_part.added"]);
            assert.deepEqual(kinds.slice(-4, -1), ["response.output_text.done", "response.content_part.done", "response.output_item.done"]);
            const text = events.filter((e) => e.type === "response.output_text.delta").map((e) => e.delta).join("");
            assert.equal(events.at(-1).response.output[0].content[0].text, text);
            assert.equal(events.find((e) => e.type === "response.output_text.done").text, text);
        });

        test("is told that there is no earlier response", async () => {
            await assert.rejects(client().responses.create({model, input: "hi", previous_response_id: "resp_1"}), (error) =>
                error.status === 400 && error.code === "previous_response_not_found" && error.param === "previous_response_id");
        });

        test("takes items of earlier turns, and skips what is not for it", async () => {
            const response = await client().responses.create({model, max_output_tokens: 4, temperature: 0,
                tools: [{type: "web_search"}], input: [
                    {type: "message", role: "user", content: "hi"}, {type: "reasoning", id: "rs_1", summary: []},
                    {type: "message", role: "assistant", content: [{type: "output_text", text: "hello"}]},
                    {role: "user", content: "again"}]});
            assert.equal(response.output[0].role, "assistant");
        });

        test("looks whether the model is there with an empty input", async () => {
            assert.equal((await client().responses.create({model, input: [], max_output_tokens: 1})).object, "response");
        });

        test("streams a chat", async () => {
            const chunks = await gather(await client().chat.completions.create(
                {model, messages: edit, max_tokens: tokensMax, temperature: 0, stream: true}));
            assert.equal(chunks.map((c) => c.choices[0]?.delta?.content ?? "").join(""), expected);
        });
    });
}

describe("ai", () => {
    const wish = {prompt, maxOutputTokens: tokensMax, temperature: 0, maxRetries: 0};
    const openai = () => createOpenAI({baseURL: `${server.url}/v1`, apiKey: "none"});
    const models = {
        "@ai-sdk/openai, by responses": () => openai()(model),
        "@ai-sdk/openai, by chat": () => openai().chat(model),
        "@ai-sdk/openai-compatible": () => createOpenAICompatible({name: "redline", baseURL: `${server.url}/v1`}).chatModel(model),
    };
    for (const [name, make] of Object.entries(models)) {
        test(`${name} generates and streams`, async () => {
            const whole = await generateText({...wish, model: make()});
            assert.equal(whole.text, expected);
            assert.equal(whole.finishReason, "length");
            assert.equal(whole.usage.outputTokens, tokensMax);
            const stream = streamText({...wish, model: make()});
            assert.equal((await gather(stream.textStream)).join(""), expected);
        });
    }
});

describe("@langchain/openai", () => {
    for (const useResponsesApi of [false, true]) {
        test(`invokes and streams by ${useResponsesApi ? "responses" : "chat"}`, async () => {
            const chat = new ChatOpenAI({model, maxTokens: tokensMax, temperature: 0, apiKey: "none", maxRetries: 0, useResponsesApi,
                configuration: {baseURL: `${server.url}/v1`}});
            assert.equal((await chat.invoke(prompt)).text, expected);
            assert.equal((await gather(await chat.stream(prompt))).map((c) => c.text).join(""), expected);
        });
    }
});

test("@llamaindex/openai chats and streams", async () => {
    const llm = new LlamaIndexOpenAI({model, maxTokens: tokensMax, temperature: 0, apiKey: "none", baseURL: `${server.url}/v1`, maxRetries: 0});
    assert.equal((await llm.chat({messages: edit})).message.content, expected);
    const parts = await gather(await llm.chat({messages: edit, stream: true}));
    assert.equal(parts.map((p) => p.delta).join(""), expected);
});

for (const useResponses of [true, false]) {
    test(`@openai/agents runs an agent by ${useResponses ? "responses" : "chat"}`, async () => {
        const provider = new OpenAIProvider({apiKey: "none", baseURL: `${server.url}/v1`, useResponses});
        const agent = new Agent({name: "editor", instructions: "Edit.", model, modelSettings: {maxTokens: tokensMax, temperature: 0}});
        const outcome = new Runner({modelProvider: provider, tracingDisabled: true}).run(agent, prompt);
        // With responses it treats a length limit as a failure, with chats as an answer.
        if (useResponses) return assert.rejects(outcome, /response\.incomplete/);
        assert.ok((await outcome).finalOutput.length > 0);
    });
}

describe("@anthropic-ai/sdk", () => {
    const client = () => new Anthropic({baseURL: server.url, apiKey: "none", maxRetries: 0});
    const wish = {model, max_tokens: tokensMax, temperature: 0, messages: [{role: "user", content: prompt}]};

    test("answers, whole and in events", async () => {
        const message = await client().messages.create(wish);
        assert.equal(message.content[0].text, expected);
        assert.equal(message.stop_reason, "max_tokens");
        assert.equal(message.usage.output_tokens, tokensMax);
        const stream = client().messages.stream(wish);
        const kinds = (await gather(stream)).map((e) => e.type);
        assert.equal(kinds[0], "message_start");
        assert.deepEqual(kinds.slice(-3), ["content_block_stop", "message_delta", "message_stop"]);
        const final = await stream.finalMessage();
        assert.equal(final.content[0].text, expected);
        assert.equal(final.stop_reason, "max_tokens");
        assert.equal(final.usage.output_tokens, tokensMax);
    });

    test("takes a system text, blocks and stop sequences", async () => {
        const cut = expected.slice(3, 6);
        const message = await client().messages.create({...wish, system: [{type: "text", text: "", cache_control: {type: "ephemeral"}}],
            messages: [{role: "user", content: [{type: "text", text: prompt}]}], stop_sequences: [cut]});
        assert.ok(!message.content[0].text.includes(cut));
    });

    test("counts tokens as the answer does", async () => {
        const counted = await client().messages.countTokens({model, messages: wish.messages});
        const {usage} = await client().messages.create(wish);
        assert.equal(counted.input_tokens, usage.input_tokens + usage.cache_read_input_tokens);
    });

    test("is refused in its own words", async () => {
        await assert.rejects(client().messages.create({...wish, model: "claude-9"}), Anthropic.NotFoundError);
        await assert.rejects(client().messages.create({...wish, max_tokens: undefined}), (error) =>
            error instanceof Anthropic.BadRequestError && error.error.type === "error" && /max_tokens/.test(error.message));
        await assert.rejects(client().messages.create({...wish, messages: [{role: "user", content: [
            {type: "image", source: {type: "base64", media_type: "image/png", data: ""}}]}]}), /messages\[0\].content\[0\].type/);
    });
});

describe("ollama", () => {
    const client = () => new Ollama({host: server.url});
    const options = {num_predict: tokensMax, temperature: 0};

    test("lists and shows models", async () => {
        assert.deepEqual((await client().list()).models.map((m) => m.name), [model]);
        assert.deepEqual((await client().ps()).models.map((m) => m.name), [model]);
        const shown = await client().show({model: `${model}:latest`});
        assert.ok(shown.capabilities.includes("completion"));
        assert.ok(shown.model_info["redline.context_length"] > 0);
        assert.match((await client().version()).version, /^\d+\.\d+\.\d+$/);
    });

    test("chats and generates, whole and in lines", async () => {
        const chat = {model, messages: edit, options};
        assert.equal((await client().chat(chat)).message.content, expected);
        const lines = await gather(await client().chat({...chat, stream: true}));
        assert.equal(lines.map((l) => l.message.content).join(""), expected);
        assert.equal(lines.at(-1).done_reason, "length");
        assert.equal(lines.at(-1).eval_count, tokensMax);
        assert.equal((await client().generate({model, prompt, options})).response, expected);
        assert.equal((await client().generate({model, prompt: ""})).done_reason, "load");
    });

    test("is refused with a text", async () => {
        await assert.rejects(client().chat({model: "llama9", messages: edit}), (error) =>
            error.status_code === 404 && /no model 'llama9'/.test(error.message));
    });
});

test("@continuedev/openai-adapters chats and completes", async () => {
    const llm = constructLlmApi({provider: "openai", apiKey: "none", apiBase: `${server.url}/v1/`});
    const {signal} = new AbortController();
    const whole = await llm.chatCompletionNonStream({model, messages: edit, max_tokens: tokensMax, temperature: 0, stream: false}, signal);
    assert.equal(whole.choices[0].message.content, expected);
    const chunks = await gather(llm.chatCompletionStream({model, messages: edit, max_tokens: tokensMax, temperature: 0, stream: true}, signal));
    assert.equal(chunks.map((c) => c.choices[0]?.delta?.content ?? "").join(""), expected);
});
