// What speculation saves in edits that an agent makes with tools, compared with the same edits as whole files. Answers
// are scripted, so each is right, and all passes are computed. Usage: run.sh BUILD_FOLDER tool_edits.mjs EDITS.jsonl
// [REPEATS [OPTIONS OF SERVE...]]
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {copyWith} from "./gguf.mjs";
import {Server, draftModel, targetModel} from "./redline.mjs";
import {hermes} from "./tool_templates.mjs";

const [path, repeats = "3", ...options] = process.argv.slice(2);
const edits = readFileSync(path, "utf8").trim().split("\n").map((line) => JSON.parse(line));
const tool = (name, ...fields) => ({type: "function", function: {name, parameters: {
    type: "object", properties: Object.fromEntries(fields.map((f) => [f, {type: "string"}])), required: fields}}});
const tools = [tool("read_file", "path"), tool("write_file", "path", "content"),
               tool("edit_file", "path", "old_string", "new_string")];
const call = (name, args) => `<tool_call>\n{"name": "${name}", "arguments": ${JSON.stringify(args)}}\n</tool_call>`;

/** The differing lines, with three lines around them, as one replacement. */
function asReplacement(before, after) {
    const a = before.split("\n"), b = after.split("\n");
    let head = 0;
    while (head < Math.min(a.length, b.length) && a[head] === b[head]) ++head;
    let tail = 0;
    while (tail < Math.min(a.length, b.length) - head && a.at(-1 - tail) === b.at(-1 - tail)) ++tail;
    const first = Math.max(0, head - 3), rest = Math.max(0, tail - 3);
    return [a.slice(first, a.length - rest).join("\n"), b.slice(first, b.length - rest).join("\n")];
}

const forms = {
    "whole file": (e, key) => ({
        say: "```\n" + e.after + "```",
        body: {messages: [{role: "user", content: `${key} ${e.instruction}\n\`\`\`\n${e.before}\`\`\``}]}}),
    "write_file": (e, key) => ({say: call("write_file", {path: e.path ?? "file", content: e.after}), body: afterReading(e, key)}),
    "edit_file": (e, key) => {
        const [old_string, new_string] = asReplacement(e.before, e.after);
        return {say: call("edit_file", {path: e.path ?? "file", old_string, new_string}), body: afterReading(e, key)};
    },
};
const afterReading = (e, key) => ({tools, messages: [
    {role: "user", content: `${key} ${e.instruction}`},
    {role: "assistant", content: null, tool_calls: [
        {id: "call_1", type: "function", function: {name: "read_file", arguments: JSON.stringify({path: e.path ?? "file"})}}]},
    {role: "tool", tool_call_id: "call_1", content: e.before}]});

const cases = Object.entries(forms).flatMap(([form, make], f) => edits.map((e, i) => {
    const key = `(case ${f}.${i})`;
    return {form, edit: i, key, ...make(e, key)};
}));
const folder = mkdtempSync(join(tmpdir(), "redline-edits-"));
const [model, draft] = [join(folder, "target.gguf"), join(folder, "draft.gguf")];
copyWith(targetModel, model, {"tokenizer.chat_template": hermes, "qwen2.context_length": 16384});
copyWith(draftModel, draft, {"qwen2.context_length": 16384});
writeFileSync(join(folder, "script.json"), JSON.stringify(cases.map((c) => ({when: [c.key], say: c.say}))));
const server = await Server.start("--model", model, "--draft", draft, "--script", join(folder, "script.json"), ...options);

async function once(c, method) {
    const response = await fetch(`${server.url}/v1/chat/completions`, {
        method: "POST", headers: {"content-type": "application/json"},
        body: JSON.stringify({...c.body, temperature: 0, redline: {speculation: {method}}})});
    const answer = await response.json();
    if (!response.ok) throw new Error(JSON.stringify(answer));
    const {message} = answer.choices[0];
    const said = message.tool_calls ? call(message.tool_calls[0].function.name, JSON.parse(message.tool_calls[0].function.arguments))
                                    : message.content;
    if (said !== c.say) throw new Error(`${c.form} ${c.edit}: expected ${c.say}\nfound ${said}`);
    const {completion_tokens: tokens, redline: {seconds, target_passes: passes}} = answer.usage;
    return {seconds, passes, tokens};
}

const methods = ["regular", "lookup", "auto"];
const totals = {};
for (const c of cases) {
    await once(c, "lookup");  // its prompt is cached from here on
    const best = {};
    for (let i = 0; i < Number(repeats); ++i) {
        for (const method of methods) {
            const got = await once(c, method);
            if (!best[method] || got.seconds < best[method].seconds) best[method] = got;
        }
    }
    for (const method of methods) {
        const sum = ((totals[c.form] ??= {})[method] ??= {seconds: 0, passes: 0, tokens: 0});
        for (const k of Object.keys(sum)) sum[k] += best[method][k];
    }
}
const speedup = (form, method) => totals[form].regular.seconds / totals[form][method].seconds;
console.log("form          method     tokens  passes  tokens/pass  seconds  speed-up  of whole file's");
for (const form of Object.keys(totals)) {
    for (const method of methods) {
        const t = totals[form][method];
        console.log([form.padEnd(13), method.padEnd(8), String(t.tokens).padStart(8), String(t.passes).padStart(7),
                     (t.tokens / t.passes).toFixed(2).padStart(12), t.seconds.toFixed(3).padStart(8),
                     speedup(form, method).toFixed(2).padStart(9),
                     (speedup(form, method) / speedup("whole file", method)).toFixed(2).padStart(16)].join(" "));
    }
}
await server.kill();
rmSync(folder, {recursive: true});
