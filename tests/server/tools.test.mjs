// Tools as common clients send and read them. The model's answers are scripted (`--script`), because the demo model
// would call nothing. The passes, the grammar and the protocol are real.
import assert from "node:assert/strict";
import {mkdtempSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {after, before, describe, test} from "node:test";
import {createOpenAICompatible} from "@ai-sdk/openai-compatible";
import {tool as langchainTool} from "@langchain/core/tools";
import {concat} from "@langchain/core/utils/stream";
import {ChatOpenAI} from "@langchain/openai";
import {generateText, stepCountIs, streamText, tool} from "ai";
import {z} from "zod";
import {copyWith} from "./gguf.mjs";
import {Server, targetModel} from "./redline.mjs";
import {hermes} from "./tool_templates.mjs";

const source = 'def greet(name):\n    """Says "hello"."""\n    return "hello " + name\n';
const edited = source.replaceAll("hello", "good day");
const call = (name, args) => `<tool_call>\n{"name": "${name}", "arguments": ${JSON.stringify(args)}}\n</tool_call>`;
const script = [
    {when: ["Greet politely", "written"], say: "Done: it is polite now."},
    {when: ["Greet politely", "<tool_response>"],
     say: `I rewrite it.\n${call("write_file", {path: "greet.py", content: edited})}`},
    {when: ["Greet politely"], say: `I look at it.\n${call("read_file", {path: "greet.py"})}`},
    {when: ["Two at once"], say: `${call("read_file", {path: "a"})}\n${call("read_file", {path: "b é 漢"})}`},
    {when: ["Say it"], say: "No tool is needed: 1 < 2."},
    {when: ["Apply this update", "Polite, please"], say: "```python\n" + edited + "```"},
    {when: ["Apply this update", "Cut short"], say: "```python\n" + edited},
];

let folder;
let server;
let client;

before(async () => {
    folder = mkdtempSync(join(tmpdir(), "redline-tools-"));
    const model = join(folder, "hermes.gguf");
    copyWith(targetModel, model, {"tokenizer.chat_template": hermes});
    writeFileSync(join(folder, "script.json"), JSON.stringify(script));
    // Whole drafts: passes are counted below, and draft widths would depend on the machine's load.
    server = await Server.start("--model", model, "--alias", "demo-tools", "--draft-length", "whole", "--script",
                                join(folder, "script.json"));
    client = server.client();
});
after(async () => {
    await server?.kill();
    if (folder) rmSync(folder, {recursive: true});
});

const schema = (properties) => ({type: "object", properties, required: Object.keys(properties), additionalProperties: false});
const tools = [
    {type: "function", function: {name: "read_file", description: "Reads a file.", parameters: schema({path: {type: "string"}})}},
    {type: "function", function: {name: "write_file", description: "Writes a file.",
                                  parameters: schema({path: {type: "string"}, content: {type: "string"}})}},
];
const ask = (content, more = {}) => ({model: "demo-tools", messages: [{role: "user", content}], tools, temperature: 0,
                                      max_tokens: 400, ...more});

/** Acts as a file system. */
function run(files, name, args) {
    if (name === "read_file") return files[args.path] ?? "no such file";
    files[args.path] = args.content;
    return "written";
}

async function gather(stream) {
    const choices = [];
    for await (const chunk of stream) {
        for (const {index, delta, finish_reason} of chunk.choices) {
            const c = (choices[index] ??= {content: "", calls: [], events: 0});
            c.content += delta.content ?? "";
            for (const part of delta.tool_calls ?? []) {
                ++c.events;
                const known = (c.calls[part.index] ??= {arguments: ""});
                if (part.id) Object.assign(known, {id: part.id, type: part.type, name: part.function.name});
                known.arguments += part.function.arguments;
            }
            if (finish_reason) c.finish = finish_reason;
        }
    }
    return choices;
}

describe("openai", () => {
    test("a call comes whole, with the text before it", async () => {
        const {choices: [choice]} = await client.chat.completions.create(ask("Greet politely"));
        assert.equal(choice.finish_reason, "tool_calls");
        assert.equal(choice.message.content, "I look at it.");
        assert.equal(choice.message.tool_calls.length, 1);
        const [one] = choice.message.tool_calls;
        assert.match(one.id, /^call_\w+$/);
        assert.equal(one.type, "function");
        assert.equal(one.function.name, "read_file");
        assert.deepEqual(JSON.parse(one.function.arguments), {path: "greet.py"});
    });

    test("a stream says the same: the name first, then the arguments in pieces", async () => {
        const whole = (await client.chat.completions.create(ask("Two at once"))).choices[0].message;
        const [streamed] = await gather(await client.chat.completions.create(ask("Two at once", {stream: true})));
        assert.equal(whole.content, null);
        assert.equal(streamed.content, "");
        assert.equal(streamed.finish, "tool_calls");
        assert.deepEqual(streamed.calls.map((c) => [c.name, c.arguments]),
                         whole.tool_calls.map((c) => [c.function.name, c.function.arguments]));
        assert.deepEqual(streamed.calls.map((c) => JSON.parse(c.arguments).path), ["a", "b é 漢"]);
        assert.equal(new Set(streamed.calls.map((c) => c.id)).size, 2);
        assert.ok(streamed.events > 4);
    });

    test("n answers have calls of their own", async () => {
        const choices = await gather(await client.chat.completions.create(ask("Greet politely", {stream: true, n: 3})));
        assert.equal(choices.length, 3);
        assert.equal(new Set(choices.map((c) => c.calls[0].id)).size, 3);
        for (const c of choices) assert.deepEqual(JSON.parse(c.calls[0].arguments), {path: "greet.py"});
    });

    test("parallel_tool_calls: false ends the answer with its first call", async () => {
        const {choices: [choice]} = await client.chat.completions.create(ask("Two at once", {parallel_tool_calls: false}));
        assert.equal(choice.message.tool_calls.length, 1);
        assert.equal(choice.finish_reason, "tool_calls");
    });

    test("an answer without a call is text, and none calls nothing", async () => {
        const said = (await client.chat.completions.create(ask("Say it"))).choices[0];
        assert.equal(said.message.content, "No tool is needed: 1 < 2.");
        assert.equal(said.finish_reason, "stop");
        assert.equal(said.message.tool_calls, undefined);
        const none = (await client.chat.completions.create(ask("Two at once", {tool_choice: "none"}))).choices[0];
        assert.match(none.message.content, /^<tool_call>/, "what the script says is then only text");
    });

    test("the model, whose tokens the masks choose, calls what is required", async () => {
        for (const tool_choice of ["required", {type: "function", function: {name: "write_file"}}]) {
            const {choices: [choice]} = await client.chat.completions.create(
                ask("Something that no script knows", {tool_choice, max_tokens: 60}));
            assert.ok(choice.message.tool_calls.length >= 1, JSON.stringify(choice));
            const {name, arguments: args} = choice.message.tool_calls[0].function;
            if (tool_choice !== "required") assert.equal(name, "write_file");
            if (choice.finish_reason === "length") assert.match(args, /^\{\s*(?:"path"|$)/);
            else assert.equal(typeof JSON.parse(args).path, "string");
        }
    });

    test("drafts change nothing", async () => {
        const using = (method) => ({redline: {speculation: {method}}});
        const messages = [
            {role: "user", content: "Greet politely"},
            {role: "assistant", content: null, tool_calls: [{id: "call_1", type: "function",
                                                             function: {name: "read_file", arguments: '{"path":"greet.py"}'}}]},
            {role: "tool", tool_call_id: "call_1", content: source},
        ];
        const answers = [];
        for (const method of ["regular", "lookup"]) {
            answers.push(await client.chat.completions.create(ask("", {messages, ...using(method)})));
        }
        const calls = answers.map((a) => a.choices[0].message.tool_calls[0].function);
        assert.deepEqual(calls[0], calls[1]);
        assert.equal(JSON.parse(calls[1].arguments).content, edited);
        assert.ok(answers[1].usage.redline.accepted > 20, "the file is copied though it is escaped");
        assert.ok(answers[1].usage.redline.target_passes < answers[0].usage.redline.target_passes / 2);
    });

    test("a stream that broke off in the middle of a call goes on from its last event", async () => {
        const body = JSON.stringify(ask("Two at once", {stream: true, stream_options: {include_usage: true}}));
        const send = (headers = {}) => fetch(`${server.url}/v1/chat/completions`,
                                             {method: "POST", headers: {"content-type": "application/json", ...headers}, body});
        const whole = (await (await send()).text()).split("\n\n").filter((e) => e.startsWith("id:"));
        const seen = new Set();
        for (let cut = 1; cut < whole.length; cut += 2) {
            const id = whole[cut - 1].match(/^id: (\S+)/)[1];
            const rest = (await (await send({"last-event-id": id})).text()).split("\n\n").filter((e) => e.startsWith("id:"));
            const saying = (events) => events.map((e) => {
                const {choices: [c]} = JSON.parse(e.slice(e.indexOf("data: ") + 6));
                if (!c) return "";
                const part = c.delta.tool_calls?.[0];
                return (c.delta.content ?? "") + (part?.id ?? "") + (part?.function.name ?? "") + (part?.function.arguments ?? "");
            }).join("");
            assert.equal(saying(whole.slice(0, cut)) + saying(rest), saying(whole));
            seen.add(cut);
        }
        assert.ok(seen.size > 3);
    });

    test("log-probabilities tell the tokens of a call, too", async () => {
        const asked = ask("Greet politely", {logprobs: true});
        const whole = (await client.chat.completions.create(asked)).choices[0].logprobs.content;
        assert.match(whole.map((t) => t.token).join(""), /tool_call/);
        let count = 0;
        for await (const chunk of await client.chat.completions.create({...asked, stream: true})) {
            count += chunk.choices[0]?.logprobs?.content.length ?? 0;
        }
        assert.equal(count, whole.length);
    });

    test("functions of old are answered by a function_call", async () => {
        const functions = tools.map((t) => t.function);
        const {choices: [choice]} = await client.chat.completions.create(
            {...ask("Greet politely"), tools: undefined, functions});
        assert.equal(choice.finish_reason, "function_call");
        assert.deepEqual(JSON.parse(choice.message.function_call.arguments), {path: "greet.py"});
    });

    test("the members that Zed, Copilot and Open WebUI send beside tools change nothing", async () => {
        for (const more of [{parallel_tool_calls: false, stop: [], prompt_cache_key: "k", reasoning_effort: "medium"},
                            {tool_choice: "auto", n: 1, top_p: 1}, {stream_options: {include_usage: true}}]) {
            const [choice] = await gather(await client.chat.completions.create(ask("Greet politely", {stream: true, ...more})));
            assert.deepEqual(JSON.parse(choice.calls[0].arguments), {path: "greet.py"});
        }
    });

    test("what cannot be is refused with its place", async () => {
        const refused = async (more, param, says) => {
            await assert.rejects(client.chat.completions.create(ask("x", more)), (error) => {
                assert.equal(error.status, 400);
                assert.equal(error.param, param);
                assert.match(error.message, says);
                return true;
            });
        };
        const strict = (parameters) => ({tools: [{type: "function", function: {name: "f", strict: true, parameters}}]});
        await refused({tool_choice: {type: "function", function: {name: "nope"}}}, "tool_choice.function.name", /not one of/);
        await refused(strict({type: "object", properties: {a: {contentEncoding: "x"}}}), "tools", /contentEncoding/);
        await refused(strict({type: "array"}), "tools", /type object/);
        await refused({tools: Array(129).fill(tools[0])}, "tools", /at most 128/);
        await refused({messages: [{role: "assistant", content: null}]}, "messages[0].content", /without tool_calls/);
        const deep = JSON.parse('{"a":'.repeat(62) + "1" + "}".repeat(62));
        await assert.rejects(client.chat.completions.create(ask("x", strict(deep))), {status: 400});
    });

    test("a template without tools says so", async () => {
        const plain = await Server.start();
        try {
            const send = (more) => plain.client().chat.completions.create({...ask("x", more), model: "demo-target", max_tokens: 4});
            await assert.rejects(send({}), (error) => {
                assert.equal(error.status, 400);
                assert.equal(error.param, "tools");
                assert.match(error.message, /does not support tools/);
                return true;
            });
            assert.equal((await send({tool_choice: "none"})).choices.length, 1);
        } finally {
            await plain.kill();
        }
    });
});

describe("code/apply, as Continue's adapter for Relace calls it", () => {
    const apply = (editSnippet) => fetch(`${server.url}/v1/code/apply`, {
        method: "POST", headers: {"content-type": "application/json", authorization: "Bearer none"},
        body: JSON.stringify({initialCode: source, editSnippet})});

    test("merges an update into a file", async () => {
        const answer = await apply("# ... existing code ...\n# Polite, please\n");
        const body = await answer.json();
        assert.equal(answer.status, 200, JSON.stringify(body));
        assert.equal(body.mergedCode, edited);
        assert.equal(body.usage.total_tokens, body.usage.prompt_tokens + body.usage.completion_tokens);
    });

    test("gives no file that is cut short", async () => {
        const answer = await apply("# Cut short\n");
        assert.equal(answer.status, 422);
        const {error} = await answer.json();
        assert.equal(error.code, "unusable_answer");
        assert.match(error.message, /ends inside the file/);
    });
});

describe("ai with @ai-sdk/openai-compatible", () => {
    const model = () => createOpenAICompatible({name: "redline", baseURL: `${server.url}/v1`, includeUsage: true})("demo-tools");
    const sdkTools = (files) => ({
        read_file: tool({description: "Reads a file.", inputSchema: z.object({path: z.string()}),
                         execute: (args) => run(files, "read_file", args)}),
        write_file: tool({description: "Writes a file.", inputSchema: z.object({path: z.string(), content: z.string()}),
                          execute: (args) => run(files, "write_file", args)}),
    });

    test("a loop of tools leads to a changed file", async () => {
        const files = {"greet.py": source};
        const answer = await generateText({model: model(), tools: sdkTools(files), prompt: "Greet politely", temperature: 0,
                                           maxOutputTokens: 400, stopWhen: stepCountIs(5)});
        assert.equal(files["greet.py"], edited);
        assert.equal(answer.text, "Done: it is polite now.");
        assert.equal(answer.steps.length, 3);
    });

    test("so does a streamed one", async () => {
        const files = {"greet.py": source};
        const stream = streamText({model: model(), tools: sdkTools(files), prompt: "Greet politely", temperature: 0,
                                   maxOutputTokens: 400, stopWhen: stepCountIs(5), onError({error}) { throw error; }});
        let text = "";
        for await (const part of stream.textStream) text += part;
        assert.equal(files["greet.py"], edited);
        assert.match(text, /Done: it is polite now\.$/);
    });
});

describe("@langchain/openai", () => {
    const model = () => new ChatOpenAI({model: "demo-tools", apiKey: "none", temperature: 0, maxTokens: 400, maxRetries: 0,
                                        configuration: {baseURL: `${server.url}/v1`}});
    const streamed = async (bound, messages) => {
        let all;
        for await (const chunk of await bound.stream(messages)) all = all ? concat(all, chunk) : chunk;
        return all;
    };
    const langTools = (files) => [
        langchainTool((args) => run(files, "read_file", args),
                      {name: "read_file", description: "Reads a file.", schema: z.object({path: z.string()})}),
        langchainTool((args) => run(files, "write_file", args),
                      {name: "write_file", description: "Writes a file.", schema: z.object({path: z.string(), content: z.string()})}),
    ];

    for (const streaming of [false, true]) {
        test(`a loop of tools leads to a changed file${streaming ? ", streamed" : ""}`, async () => {
            const files = {"greet.py": source};
            const all = langTools(files);
            const bound = model().bindTools(all);
            const messages = [{role: "user", content: "Greet politely"}];
            let answer;
            for (let step = 0; step < 5; ++step) {
                answer = streaming ? await streamed(bound, messages) : await bound.invoke(messages);
                messages.push(answer);
                if (!answer.tool_calls?.length) break;
                for (const made of answer.tool_calls) {
                    messages.push(await all.find((t) => t.name === made.name).invoke(made));
                }
            }
            assert.equal(files["greet.py"], edited);
            assert.equal(answer.content, "Done: it is polite now.");
        });
    }
});
