// Tool calls through the SDKs whose APIs are not OpenAI's chat; each runs a loop of calls until a file is changed. The
// model's answers are scripted (`--script`), and the rest is real.
import assert from "node:assert/strict";
import {mkdtempSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {after, before, describe, test} from "node:test";
import {createOpenAI} from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import {constructLlmApi} from "@continuedev/openai-adapters";
import {Agent, OpenAIProvider, Runner, tool as agentTool} from "@openai/agents";
import {generateText, stepCountIs, tool} from "ai";
import {Ollama} from "ollama";
import OpenAI from "openai";
import {z} from "zod";
import {copyWith} from "./gguf.mjs";
import {Server, targetModel} from "./redline.mjs";
import {hermes} from "./tool_templates.mjs";

const model = "demo-tools";
const source = "LIMIT = 10\n", edited = "LIMIT = 64\n";
const prompt = "Raise the limit in limits.py.";
const call = (name, args) => `<tool_call>\n{"name": "${name}", "arguments": ${JSON.stringify(args)}}\n</tool_call>`;
const script = [
    {when: [prompt, "written"], say: "Done."},
    {when: [prompt, "<tool_response>"], say: `I write it.\n${call("write_file", {path: "limits.py", content: edited})}`},
    {when: ["Apply this update", "sixty-four"], say: "```\n" + edited + "```"},
    {when: ["You complete edits", "LIMIT = <|cursor|>10"], say: "```\n" + edited + "```"},
    {when: [prompt], say: `I look.\n${call("read_file", {path: "limits.py"})}`},
];
const said = ["I look.", "I write it.", "Done."];

let folder;
let server;
before(async () => {
    folder = mkdtempSync(join(tmpdir(), "redline-sdk-tools-"));
    copyWith(targetModel, join(folder, "hermes.gguf"), {"tokenizer.chat_template": hermes});
    writeFileSync(join(folder, "script.json"), JSON.stringify(script));
    server = await Server.start("--model", join(folder, "hermes.gguf"), "--alias", model, "--script", join(folder, "script.json"));
});
after(async () => {
    await server?.kill();
    if (folder) rmSync(folder, {recursive: true});
});

const object = (...names) => ({type: "object", properties: Object.fromEntries(names.map((n) => [n, {type: "string"}])),
                               required: names, additionalProperties: false});
const functions = [{name: "read_file", description: "Reads a file.", schema: object("path")},
                   {name: "write_file", description: "Writes a file.", schema: object("path", "content")}];

/** Acts as a file system. */
function run(files, name, args) {
    if (name === "read_file") return files[args.path] ?? "no such file";
    files[args.path] = args.content;
    return "written";
}

/** ask(messages) -> {text, calls: [{name, args, id}], messages: to continue with}; answer(call, result) -> one message. */
async function loop(first, ask, answer) {
    const files = {"limits.py": source}, texts = [];
    const messages = [first];
    for (let step = 0; step < 5; ++step) {
        const {text, calls, messages: more} = await ask(messages);
        texts.push(text.trim());
        messages.push(...more);
        if (calls.length === 0) break;
        for (const made of calls) messages.push(answer(made, run(files, made.name, made.args)));
    }
    assert.equal(files["limits.py"], edited);
    assert.deepEqual(texts, said);
}

for (const streaming of [false, true]) {
    const how = streaming ? "streamed" : "whole";

    test(`@anthropic-ai/sdk, ${how}`, async () => {
        const client = new Anthropic({baseURL: server.url, apiKey: "none", maxRetries: 0});
        const tools = functions.map(({name, description, schema}) => ({name, description, input_schema: schema}));
        await loop({role: "user", content: prompt}, async (messages) => {
            const wish = {model, max_tokens: 200, temperature: 0, tools, messages};
            const message = streaming ? await client.messages.stream(wish).finalMessage() : await client.messages.create(wish);
            const uses = message.content.filter((block) => block.type === "tool_use");
            assert.equal(message.stop_reason, uses.length ? "tool_use" : "end_turn");
            return {text: message.content.filter((block) => block.type === "text").map((block) => block.text).join(""),
                    calls: uses.map(({id, name, input}) => ({id, name, args: input})),
                    messages: [{role: "assistant", content: message.content}]};
        }, (made, content) => ({role: "user", content: [{type: "tool_result", tool_use_id: made.id, content}]}));
    });

    test(`openai, by responses, ${how}`, async () => {
        const client = new OpenAI({baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0});
        const tools = functions.map(({name, description, schema}) => ({type: "function", name, description, parameters: schema, strict: true}));
        await loop({role: "user", content: prompt}, async (input) => {
            const wish = {model, input, tools, temperature: 0, max_output_tokens: 200};
            const response = streaming ? await client.responses.stream(wish).finalResponse() : await client.responses.create(wish);
            assert.equal(response.status, "completed");
            return {text: response.output_text,
                    calls: response.output.filter((item) => item.type === "function_call")
                        .map((item) => ({id: item.call_id, name: item.name, args: JSON.parse(item.arguments)})),
                    messages: response.output.map(({parsed_arguments: _, ...item}) => item)};
        }, (made, output) => ({type: "function_call_output", call_id: made.id, output}));
    });

    test(`ollama, ${how}`, async () => {
        const client = new Ollama({host: server.url});
        const tools = functions.map(({name, description, schema}) => ({type: "function", function: {name, description, parameters: schema}}));
        await loop({role: "user", content: prompt}, async (messages) => {
            const wish = {model, messages, tools, options: {temperature: 0, num_predict: 200}};
            const message = {role: "assistant", content: "", tool_calls: []};
            const take = (part) => {
                message.content += part.content;
                message.tool_calls.push(...part.tool_calls ?? []);
            };
            if (streaming) for await (const line of await client.chat({...wish, stream: true})) take(line.message);
            else take((await client.chat(wish)).message);
            return {text: message.content, messages: [message],
                    calls: message.tool_calls.map(({function: f}) => ({name: f.name, args: f.arguments}))};
        }, (made, content) => ({role: "tool", tool_name: made.name, content}));
    });
}

describe("loops of the libraries' own, by responses", () => {
    const parameters = {read_file: z.object({path: z.string()}), write_file: z.object({path: z.string(), content: z.string()})};

    test("ai with @ai-sdk/openai, told that nothing is stored", async () => {
        const files = {"limits.py": source};
        const tools = Object.fromEntries(functions.map(({name, description}) =>
            [name, tool({description, inputSchema: parameters[name], execute: (args) => run(files, name, args)})]));
        const wish = {model: createOpenAI({baseURL: `${server.url}/v1`, apiKey: "none"})(model), tools, prompt, temperature: 0,
                      maxOutputTokens: 200, maxRetries: 0, stopWhen: stepCountIs(5)};
        await assert.rejects(generateText(wish), /'store': false/);
        assert.equal(files["limits.py"], source);
        const answer = await generateText({...wish, providerOptions: {openai: {store: false}}});
        assert.equal(files["limits.py"], edited);
        assert.deepEqual(answer.steps.map((step) => step.text.trim()), said);
    });

    test("@openai/agents", async () => {
        const files = {"limits.py": source};
        const tools = functions.map(({name, description}) =>
            agentTool({name, description, parameters: parameters[name], execute: (args) => run(files, name, args)}));
        const agent = new Agent({name: "editor", instructions: "Edit.", model, tools, modelSettings: {maxTokens: 200, temperature: 0}});
        const provider = new OpenAIProvider({apiKey: "none", baseURL: `${server.url}/v1`, useResponses: true});
        const outcome = await new Runner({modelProvider: provider, tracingDisabled: true}).run(agent, prompt);
        assert.equal(files["limits.py"], edited);
        assert.equal(outcome.finalOutput, "Done.");
    });
});

describe("@continuedev/openai-adapters", () => {
    const api = (provider) => constructLlmApi({provider, apiKey: "none", apiBase: `${server.url}/v1`});
    const signal = () => AbortSignal.timeout(60000);

    test("relace applies an update to a file", async () => {
        const answer = await api("relace").chatCompletionNonStream({model, stream: false, messages: [{role: "user", content: "# now sixty-four\n"}],
            prediction: {type: "content", content: source}}, signal());
        assert.equal(answer.choices[0].message.content, edited);
        assert.ok(answer.usage.prompt_tokens > 0);
    });

    test("inception edits the region around the cursor", async () => {
        const content = "<|current_file_content|>\n<|code_to_edit|>\nLIMIT = <|cursor|>10\n<|/code_to_edit|>\n" +
                        "<|/current_file_content|>\n<|edit_diff_history|>\n\n<|/edit_diff_history|><|!@#IS_NEXT_EDIT!@#|>";  // the last marker is for the adapter
        const wish = {model, temperature: 0, max_tokens: 100};
        const answer = await api("inception").chatCompletionNonStream({...wish, messages: [{role: "user", content}]}, signal());
        assert.equal(answer.choices[0].message.content, "```\n" + edited + "```");
        let text = "";
        const stream = api("inception").chatCompletionStream({...wish, stream: true, messages: [{role: "user", content}]}, signal());
        for await (const part of stream) text += part.choices[0]?.delta.content ?? "";
        assert.equal(text, "```\n" + edited + "```");
    });
});
