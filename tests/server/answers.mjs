// Some 200 fixed requests of all kinds, and the parts of an answer that matter: texts, tokens, log-probabilities,
// finish reasons and the number of tokens, but no times and passes.
import {readFileSync} from "node:fs";
import {join} from "node:path";
import {targetModel} from "./redline.mjs";

const inventory = readFileSync(join(targetModel, "../../demo_files/inventory.py"), "utf8");
const store = `import os

ROOT = "/var/data"
LIMIT = 25


def path_of(name):
    """Returns the path of a file."""
    return os.path.join(ROOT, name)


def read(name, limit=LIMIT):
    with open(path_of(name)) as source:
        return source.read()[:limit]
`;
const edits = [
    ["rename", "Rename the class `Inventory` to `Store`.", inventory],
    ["number", "Change the number 10 to 64.", inventory],
    ["string", 'Change the string "/var/data" to "/srv/data".', store],
    ["variable", "Rename the variable `name` to `key`.", store],
];
const methods = ["regular", "lookup", "prediction", "assisted", "blazedit", "auto"];
const chatPath = "/v1/chat/completions";
const textPath = "/v1/completions";
const using = (method, more = {}) => ({redline: {speculation: {method}, ...more}});
const message = (what, text) => [{role: "user", content: `${what}\n\`\`\`python\n${text}\`\`\``}];
const chat = (edit, more = {}) => ({messages: message(edit[1], edit[2]), max_tokens: 160, temperature: 0, return_token_ids: true, ...more});
const text = (prompt, more = {}) => ({prompt, max_tokens: 80, temperature: 0.8, seed: 5, return_token_ids: true, ...more});
const program = (edit, how, more = {}) => ({max_tokens: 400, temperature: 0, ...more,
    messages: message(`${edit[1]}\nWrite an edit program that makes the new file: ${how}<gen>text</gen> writes new text, ` +
        "</program> ends it. The file, each line behind its number:",
        edit[2].split(/(?<=\n)/).map((line, i) => `${i + 1}\t${line}`).join(""))});

const requests = [];
/** Requests of one `group` have the same answer, which is computed in different ways. */
const add = (name, path, body, group = name) => requests.push({name, group, path, body});
const each = (names, make) => { for (const name of names) make(name); };

function drafting() {
    const warm = {temperature: 0.8, seed: 11, logprobs: true, top_logprobs: 1};
    each(methods, (method) => {
        for (const edit of edits) {
            add(`edit ${edit[0]} ${method}`, chatPath, chat(edit, using(method)), `edit ${edit[0]}`);
            add(`warm ${edit[0]} ${method}`, chatPath, chat(edit, {...warm, ...using(method)}), `warm ${edit[0]}`);
        }
        add(`text ${method}`, textPath, text("def load(path):\n    return", using(method)), "text");
        const content = edits[2][2].replaceAll("/var", "/srv");
        add(`predicted ${method}`, chatPath, chat(edits[2], {prediction: {type: "content", content}, ...using(method)}), "edit string");
        add(`mispredicted ${method}`, chatPath, chat(edits[0], {prediction: {type: "content", content: store}, ...using(method)}), "edit rename");
    });
    const small = {lookup: {draft_tokens_max: 3, max_matching_ngram_size: 2}, blazedit: {micro_draft_tokens: 5, max_num_run: 2},
        assisted: {draft_tokens_max: 4, confidence_min: 0.9}};
    each(Object.keys(small), (method) => add(`edit variable ${method} small`, chatPath,
        chat(edits[3], {redline: {speculation: {method, ...small[method]}}}), "edit variable"));
}

function programs() {
    const lines = '<copy lines="i-j"/> copies lines i to j of the file, ';
    const anchored = '<copy lines="i-j" first="..." last="..."/> copies lines i to j of the file and says how each of the two begins ' +
        "(24 characters at most, up to a quote), ";
    const tokens = '<copy tokens="i-j"/> copies its tokens i to j, ';
    const kinds = [["forced", "forced", lines], ["verified", "verified", lines], ["auto", "auto", lines],
        ["sure", {trust: "auto", confidence_min: 0.99}, lines], ["anchors", {trust: "auto", anchors: true}, anchored],
        ["tokens", {trust: "forced", spans: "tokens"}, tokens], ["both", {trust: "verified", spans: "both"}, lines + tokens]];
    for (const [name, copy, how] of kinds) {
        for (const method of ["regular", "lookup", "auto"]) {
            const body = program(edits[0], how, {redline: {copy, files: [inventory], speculation: {method}}});
            add(`program ${name} ${method}`, chatPath, body, `program ${name}`);
        }
    }
    const redline = {copy: "auto", files: [store, inventory]};
    add("program two files", chatPath, program(edits[2], lines, {redline, temperature: 0.9, seed: 3}));
    add("program of a prediction", chatPath, program(edits[2], lines, {redline: {copy: "forced"}, prediction: {type: "content", content: store}}));
    add("program choices", chatPath, program(edits[3], lines, {redline: {copy: "verified", files: [store]}, n: 3, temperature: 1, seed: 8}));
}

function choices() {
    const warm = {temperature: 1, seed: 3};
    each(["regular", "auto"], (method) => {
        add(`least ${method}`, chatPath, chat(edits[3], {min_tokens: 130, max_tokens: 150, ...using(method)}), "least");
        add(`n 3 ${method}`, chatPath, chat(edits[0], {n: 3, ...warm, ...using(method)}), "n 3");
        add(`n 5 prompts ${method}`, textPath, text(["def one():", "import ", "class A"], {n: 5, max_tokens: 24, logprobs: 1, ...warm, ...using(method)}), "n 5 prompts");
        add(`best of 4 ${method}`, textPath, text("def load(path):", {n: 2, best_of: 4, logprobs: 2, ...warm, ...using(method)}), "best of 4");
        add(`best of 3 chat ${method}`, chatPath, chat(edits[1], {best_of: 3, max_tokens: 60, ...warm, ...using(method)}), "best of 3 chat");
    });
}

function logprobs() {
    each(["regular", "blazedit", "auto"], (method) => {
        for (const top of [0, 5, 20]) {
            add(`top ${top} ${method}`, chatPath, chat(edits[3], {logprobs: true, top_logprobs: top, max_tokens: 60, ...using(method)}), `top ${top}`);
        }
    });
    add("logprobs 0", textPath, text("LIMIT = ", {logprobs: 0, max_tokens: 20}));
    add("logprobs 5", textPath, text("LIMIT = ", {logprobs: 5, max_tokens: 20}));
    add("echo", textPath, text(store, {logprobs: 1, echo: true, max_tokens: 8}));
    add("echo alone", textPath, text(inventory, {logprobs: 2, echo: true, max_tokens: 0}));
    add("prompt logprobs", chatPath, chat(edits[2], {prompt_logprobs: 2, max_tokens: 12}));
    add("prompt logprobs of texts", textPath, text([store, "x = 1\n"], {prompt_logprobs: 0, max_tokens: 4}));
}

function sampling() {
    const kinds = {hot: {temperature: 1.8}, "top p": {top_p: 0.4, temperature: 1.3}, "min p": {min_p: 0.2, temperature: 1.5},
        "top k": {top_k: 3, temperature: 1.5}, repetition: {repetition_penalty: 1.3}, presence: {presence_penalty: 1.5},
        frequency: {frequency_penalty: 0.8, temperature: 0}, bias: {logit_bias: {745: -4, 610: 3, 32: -100}},
        endless: {ignore_eos: true, max_tokens: 120}, stop: {stop: ["\n\n", "method code"]}, "stop tokens": {stop_token_ids: [1986, 786]},
        allowed: {allowed_token_ids: Array.from({length: 60}, (_, i) => 258 + 7 * i)}, words: {bad_words: ["chunk", "method", "bool"]}};
    for (const [name, more] of Object.entries(kinds)) {
        each(["regular", "auto"], (method) => add(`${name} ${method}`, textPath,
            text(`${inventory}\n\ndef main():\n`, {temperature: 1, seed: 21, ...more, ...using(method)}), name));
    }
}

function formats() {
    const schema = {type: "object", properties: {names: {type: "array", items: {type: "string", maxLength: 12}, minItems: 2, maxItems: 4},
        count: {type: "integer", minimum: 3}, kind: {enum: ["edit", "copy"]}}, required: ["names", "count", "kind"], additionalProperties: false};
    const kinds = {schema: {response_format: {type: "json_schema", json_schema: {name: "s", schema}}},
        object: {response_format: {type: "json_object"}}, regex: {guided_regex: "(GET|PUT) /[a-z]{3,9}/[0-9]{2}( [a-z]{1,6}){1,2}"},
        choice: {guided_choice: ["keep", "rename", "remove it"]},
        gbnf: {grammar: 'root ::= call (", " call){1,3} "\\n"\ncall ::= name "(" [0-9]{1,3} ")"\nname ::= [a-z]{2,7} ("_" [a-z]{2,5})?\n'},
        lark: {grammar: 'start: assign+\nassign: NAME " = " NUMBER "\\n"\nNAME: /[a-z_]{2,8}/\nNUMBER: /[0-9]{1,4}/\n'}};
    for (const [name, more] of Object.entries(kinds)) {
        each(["regular", "lookup", "auto"], (method) => add(`${name} ${method}`, chatPath,
            chat(edits[1], {temperature: 0.9, seed: 4, max_tokens: 90, logprobs: true, ...more, ...using(method)}), name));
    }
}

const tools = ["read_file", "write_file"].map((name, i) => ({type: "function", function: {name, description: `${name} of the project`,
    parameters: {type: "object", properties: {path: {type: "string", maxLength: 20}, ...(i && {content: {type: "string", maxLength: 60}})},
        required: i ? ["path", "content"] : ["path"], additionalProperties: false}}}));

function calls() {
    const one = {type: "function", function: {name: "write_file"}};
    const had = [{role: "user", content: "Show a.py."}, {role: "assistant", content: null, tool_calls: [{id: "call_1", type: "function",
        function: {name: "read_file", arguments: '{"path": "a.py"}'}}]}, {role: "tool", tool_call_id: "call_1", content: store}];
    each(["regular", "auto"], (method) => {
        const with_tools = (more) => chat(edits[2], {tools, temperature: 0.7, seed: 9, max_tokens: 120, ...more, ...using(method)});
        add(`tools auto ${method}`, chatPath, with_tools({}), "tools auto");
        add(`tools required ${method}`, chatPath, with_tools({tool_choice: "required", n: 2}), "tools required");
        add(`tools named ${method}`, chatPath, with_tools({tool_choice: one}), "tools named");
        add(`tools single ${method}`, chatPath, with_tools({tool_choice: "required", parallel_tool_calls: false}), "tools single");
        add(`tools answered ${method}`, chatPath, with_tools({messages: [...had, {role: "user", content: "Write it."}], tool_choice: "required"}), "tools answered");
    });
}

function evictions() {
    const turns = [...message(edits[2][1], store), {role: "assistant", content: store}, ...message(edits[3][1], store)];
    each(["reevaluate", "shift", "lazy"], (policy) => {
        each(["regular", "lookup", "auto"], (method) => add(`evict ${policy} ${method}`, chatPath,
            chat(edits[2], {temperature: 0.9, seed: 2, max_tokens: 260, ignore_eos: true, ...using(method, {eviction: {policy, n_ctx: 260}})}), `evict ${policy}`));
        add(`evict ${policy} kept`, textPath, text(store, {max_tokens: 200, ignore_eos: true, logprobs: 0,
            redline: {eviction: {policy, n_ctx: 200, n_keep: 16, n_discard: 48}}}));
        add(`evict ${policy} turns`, chatPath, {messages: turns, max_tokens: 220, temperature: 0.5, seed: 6, ignore_eos: true,
            redline: {eviction: {policy, n_ctx: 380}}});
    });
}

function shapes() {
    const [first] = message(edits[1][1], inventory);
    const gap = {input_prefix: store.slice(0, 150), input_suffix: store.slice(180), n_predict: 24, seed: 2, temperature: 0.5, n_probs: 2};
    add("shape responses", "/v1/responses", {input: first.content, max_output_tokens: 100, temperature: 0, include: ["message.output_text.logprobs"]});
    add("shape messages", "/v1/messages", {messages: [first], max_tokens: 100, temperature: 0});
    add("shape ollama", "/api/chat", {messages: [first], stream: false, options: {num_predict: 100, temperature: 0}});
    add("shape llama.cpp", "/completion", {prompt: "def load(path):", n_predict: 40, seed: 2, temperature: 0.9, n_probs: 3});
    add("shape infill", "/infill", gap);
    add("shape next edit", "/v1/edit/completions", {messages: [{role: "user", content: `<|code_to_edit|>\n${store}<|/code_to_edit|>`}],
        temperature: 0, max_tokens: 150});
    add("shape suffix", textPath, text(store.slice(0, 150), {suffix: store.slice(180), max_tokens: 30}));
}

for (const kind of [drafting, programs, choices, logprobs, sampling, formats, calls, evictions, shapes]) kind();
export {requests};

/** Edit sessions, whose calls follow one another. Their first lines differ, so that none finds another one's KV. */
export const sessions = [["exact", {}], ["pie", {healing: false}], ["conflict", {healing: false}], ["pie", {healing: true}]]
    .map(([policy, more], i) => ({name: `session ${policy}${more.healing ? " healed" : ""}`, cache: {policy, ...more},
        file: `# File ${i} of the session.\n${inventory}`}));

/** Whether an answer stays the same when moved KV is lost. */
export const isExact = ({name}) => !/^(evict (shift|lazy)|session (pie|conflict)$)/.test(name);

const calling = (list) => list?.map((call) => [call.function.name, call.function.arguments]);

/** A choice of a chat or completion, whole or gathered from a stream. */
function choiceOf(c) {
    const l = c.logprobs;
    const logprobs = l?.content ?? l?.tokens?.map((token, i) => [token, l.token_logprobs[i], l.top_logprobs[i], l.text_offset[i]]);
    return [c.index, c.text ?? c.message.content ?? "", c.message?.reasoning_content ?? "", calling(c.message?.tool_calls) ?? [],
        c.finish_reason, logprobs ?? [], c.token_ids ?? [], c.redline ?? null, c.prompt_logprobs ?? null];
}

/** The parts that decide the answer. */
export function essence(answer) {
    if (answer.choices) {
        const choices = answer.choices.map(choiceOf).sort((a, b) => a[0] - b[0]);
        return [choices, answer.prompt_logprobs ?? null, answer.usage.completion_tokens];
    }
    if (answer.output) {
        return [answer.output.map((item) => item.content?.map((part) => [part.type, part.text, part.logprobs])), answer.status, answer.usage.output_tokens];
    }
    if (answer.message) return [answer.message.content, answer.done_reason, answer.eval_count];
    if (Array.isArray(answer.content)) return [answer.content, answer.stop_reason, answer.usage.output_tokens];
    return [answer.content, answer.tokens, answer.stop_type, answer.completion_probabilities, answer.tokens_predicted];
}

/** Joins a stream's chunks into the answer. */
export function gathered(chunks) {
    const all = {choices: [], usage: null};
    for (const chunk of chunks) {
        if (chunk.usage) all.usage = chunk.usage;
        for (const part of chunk.choices) {
            const c = (all.choices[part.index] ??= {index: part.index, message: {content: "", reasoning_content: ""}, token_ids: []});
            c.message.content += part.delta?.content ?? part.text ?? "";
            c.message.reasoning_content += part.delta?.reasoning_content ?? "";
            for (const call of part.delta?.tool_calls ?? []) {
                const had = ((c.message.tool_calls ??= [])[call.index] ??= {function: {name: "", arguments: ""}});
                had.function.name += call.function.name ?? "";
                had.function.arguments += call.function.arguments ?? "";
            }
            for (const [key, value] of Object.entries(part.logprobs ?? {})) {
                if (Array.isArray(value)) ((c.logprobs ??= {})[key] ??= []).push(...value);
            }
            c.token_ids.push(...part.token_ids ?? []);
            c.finish_reason ??= part.finish_reason ?? undefined;
            c.redline ??= part.redline;
        }
    }
    return all;
}
