// How long a proposal for the next edit takes, from the key on, through `redline lsp`: with the KV of the proposals
// before it, and where each key also changes the file's first line, so that nothing can be kept. Usage: next_edit_cost.mjs [MODEL [FILE [KEYS]]]. The proposal is asked for
// in a pause of 75 ms after the key, which is a part of the time. The model's answer is scripted, so that any model can be
// measured: it takes the key back. The machine should do nothing else.
import {spawn} from "node:child_process";
import {mkdtempSync, readFileSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import protocol from "vscode-languageserver-protocol/node";
import {join} from "node:path";
import {Server, exampleConfig, program, targetModel} from "./redline.mjs";

const model = process.argv[2] ?? targetModel;
const text = "#0\n" + readFileSync(process.argv[3] ?? join(exampleConfig, "../../bench/demo_files/inventory.py"), "utf8");
const keys = Number(process.argv[4] ?? 30);
const uri = "file:///project/file.py";
const lines = text.split("\n");
// The first line is still in the prompt, which has 6,000 bytes before the cursor.
const line = text.slice(0, 5000).split("\n").length - 1;
const script = join(mkdtempSync(join(tmpdir(), "next-edit-cost-")), "script.json");
writeFileSync(script, JSON.stringify([{when: ["<|file_sep|>updated/"], say: lines.slice(line, line + 11).join("\n") + "\n"}]));
const median = (times) => [...times].sort((a, b) => a - b)[times.length >> 1];

const first = (i) => ({range: {start: {line: 0, character: 1}, end: {line: 0, character: 2}}, text: String((i + 1) % 10)});

async function measure(what, alsoFirstLine) {
    const server = await Server.start("--log-level", "warning", "--model", model, "--script", script);
    const child = spawn(program, ["lsp", "--server", server.url], {stdio: ["pipe", "pipe", "inherit"]});
    const rpc = protocol.createProtocolConnection(child.stdout, child.stdin);
    rpc.listen();
    await rpc.sendRequest("initialize", {processId: process.pid, rootUri: null, initializationOptions: {nextEdits: true},
        capabilities: {textDocument: {inlineCompletion: {}}}});
    await rpc.sendNotification("initialized", {});
    await rpc.sendNotification("textDocument/didOpen", {textDocument: {uri, languageId: "python", version: 1, text}});
    const times = [];
    for (let i = 0; i < keys; ++i) {
        const at = {line, character: lines[line].length + i};
        const begun = performance.now();
        await rpc.sendNotification("textDocument/didChange", {textDocument: {uri, version: i + 2},
            contentChanges: [...(alsoFirstLine ? [first(i)] : []), {range: {start: at, end: at}, text: "#xyz "[i % 5]}]});
        const {items} = await rpc.sendRequest("textDocument/inlineCompletion", {textDocument: {uri}, position: at, context: {triggerKind: 1}});
        if (items[0]?.insertText !== lines[line]) throw new Error(`expected the old line, found ${JSON.stringify(items)}`);
        times.push(performance.now() - begun);
    }
    child.kill();
    await server.kill();
    console.log(`${what}: first ${times[0].toFixed(0)} ms, then median ${median(times.slice(1)).toFixed(0)}, ` +
        `worst ${Math.max(...times.slice(1)).toFixed(0)} ms over ${keys - 1} keys`);
}

await measure("with the KV that is kept", false);
await measure("computed again each time", true);
