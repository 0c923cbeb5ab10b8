// Drives `redline lsp` over its standard input and output: with the editors' own library against a server and
// misbehaving stand-ins, with bytes that no editor sends, and with Neovim where it is installed.
import assert from "node:assert/strict";
import {spawn, spawnSync} from "node:child_process";
import {mkdtempSync, readFileSync, writeFileSync} from "node:fs";
import {createServer} from "node:http";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {after, afterEach, before, describe, test} from "node:test";
import {setTimeout as sleep} from "node:timers/promises";
import protocol from "vscode-languageserver-protocol/node";
import {TextDocument} from "vscode-languageserver-textdocument";
import {Server, draftModel, exampleConfig, file, program, targetModel} from "./redline.mjs";

const uri = "file:///project/load.py";
const page = join(exampleConfig, "../../docs/editors/neovim.md");
const everything = {
    general: {positionEncodings: ["utf-16"]},
    workspace: {applyEdit: true, workspaceEdit: {documentChanges: true}},
    window: {workDoneProgress: true},
    textDocument: {codeAction: {codeActionLiteralSupport: {codeActionKind: {valueSet: ["refactor.rewrite"]}}}},
};

/** An editor with one connection that stores its documents in UTF-16. */
class Editor {
    constructor(...args) {
        this.child = spawn(program, ["lsp", ...args], {stdio: ["pipe", "pipe", "pipe"]});
        this.err = "";
        this.child.stderr.setEncoding("utf8").on("data", (text) => { this.err += text; });
        this.exited = new Promise((resolve) => this.child.on("exit", (code, signal) => resolve({code, signal})));
        this.rpc = protocol.createProtocolConnection(this.child.stdout, this.child.stdin, {
            error: (text) => { this.err += text; }, warn() {}, info() {}, log() {}});
        this.shown = [];
        this.progress = [];
        this.documents = new Map();
        this.rpc.onNotification("window/showMessage", (m) => this.shown.push(m.message));
        this.rpc.onNotification("window/logMessage", (m) => this.shown.push(m.message));
        this.rpc.onNotification("$/progress", (m) => {
            this.progress.push(m.value);
            this.onProgress?.(m);
        });
        this.rpc.onRequest("window/workDoneProgress/create", () => null);
        this.rpc.onRequest("workspace/applyEdit", ({edit}) => {
            for (const change of edit.documentChanges) {
                const old = this.documents.get(change.textDocument.uri);
                if (change.textDocument.version !== old.version) return {applied: false, failureReason: "another version"};
                this.edits = change.edits;
                this.set(change.textDocument.uri, TextDocument.applyEdits(old, change.edits));
            }
            return {applied: true};
        });
        this.rpc.listen();
    }
    static async start(...args) {
        const more = typeof args.at(-1) === "object" ? args.pop() : {};
        const editor = new Editor(...args);
        editor.can = (await editor.rpc.sendRequest("initialize",
            {processId: process.pid, rootUri: null, capabilities: everything, ...more})).capabilities;
        await editor.rpc.sendNotification("initialized", {});
        return editor;
    }
    open(text, at = uri) {
        this.documents.set(at, TextDocument.create(at, "python", 1, text));
        return this.rpc.sendNotification("textDocument/didOpen",
            {textDocument: {uri: at, languageId: "python", version: 1, text}});
    }
    /** Sends changes as an editor does, each relative to the text after the previous ones. */
    change(changes, at = uri) {
        const version = this.documents.get(at).version + 1;
        this.documents.set(at, TextDocument.update(this.documents.get(at), changes, version));
        return this.rpc.sendNotification("textDocument/didChange", {textDocument: {uri: at, version}, contentChanges: changes});
    }
    set(at, text) { this.change([{text}], at); }
    text(at = uri) { return this.documents.get(at).getText(); }
    end(at = uri) { return this.documents.get(at).positionAt(this.text(at).length); }
    complete(position = this.end(), method = "textDocument/completion", ...token) {
        return this.rpc.sendRequest(method, {textDocument: {uri}, position, context: {triggerKind: 1}}, ...token);
    }
    edit(instruction, more = {}, ...token) {
        return this.rpc.sendRequest("workspace/executeCommand",
            {command: "redline.edit", arguments: [{uri, instruction, ...more}]}, ...token);
    }
    async quit() {
        await this.rpc.sendRequest("shutdown");
        await this.rpc.sendNotification("exit");
        return this.exited;
    }
}

const until = async (what, seconds = 30) => {
    for (let i = 0; i < seconds * 50; ++i) {
        const value = await what();
        if (value) return value;
        await sleep(20);
    }
    throw new Error(`never came true: ${what}`);
};
const items = (list) => list.items.map((one) => one.textEdit.newText);

describe("with a next-edit model", () => {
    const folder = mkdtempSync(join(tmpdir(), "next-edits-"));
    let server, editor;
    before(async () => {
        writeFileSync(join(folder, "script.json"), JSON.stringify([{when: ["<|file_sep|>updated/load.py:"],
            say: "LIMIT = 10\n\n\ndef load(path, most):\n    return path[:most]\n"}]));
        server = await Server.start("--script", join(folder, "script.json"));
        editor = await Editor.start("--server", server.url, {initializationOptions: {nextEdits: true},
            capabilities: {...everything, textDocument: {...everything.textDocument, inlineCompletion: {}}}});
    });
    after(async () => {
        editor?.child.kill();
        await server?.kill();
    });

    test("proposes the next edit in a pause, inline and as an action", async () => {
        await editor.open("LIMIT = 10\n\n\ndef load(path):\n    return path[:most]\n");
        const range = {start: {line: 0, character: 8}, end: {line: 0, character: 9}};
        await editor.change([{range, text: "1"}]);
        const at = {line: 3, character: 13};
        const {items} = await editor.complete(at, "textDocument/inlineCompletion");
        assert.deepEqual(items, [{insertText: "def load(path, most):",
            range: {start: {line: 3, character: 0}, end: {line: 3, character: 15}}}]);
        const actions = await editor.rpc.sendRequest("textDocument/codeAction", {textDocument: {uri}, range: {start: at, end: at}, context: {diagnostics: []}});
        const [action] = actions;
        assert.equal(action.title, "Next edit at line 4");
        const [change] = action.edit.documentChanges;
        assert.equal(TextDocument.applyEdits(editor.documents.get(uri), change.edits), editor.text().replace("path)", "path, most)"));
        assert.equal(change.textDocument.version, 2);
    });

    test("gives up a proposal at the next key", async () => {
        const at = {line: 0, character: 0};
        await editor.change([{range: {start: at, end: at}, text: "#"}]);
        const first = editor.complete({line: 3, character: 0}, "textDocument/inlineCompletion");
        await sleep(90);
        await editor.change([{range: {start: at, end: {line: 0, character: 1}}, text: ""}]);
        assert.deepEqual((await first).items, []);
        assert.equal((await editor.complete({line: 3, character: 0}, "textDocument/inlineCompletion")).items.length, 1);
    });
});

describe("with a server", () => {
    let server, editor;
    before(async () => {
        server = await Server.start("--draft", draftModel);
        editor = await Editor.start("--server", server.url);
    });
    after(async () => {
        editor?.child.kill();
        await server?.kill();
    });

    test("says what it can", () => {
        assert.equal(editor.can.positionEncoding, "utf-16");
        assert.deepEqual(editor.can.textDocumentSync, {openClose: true, change: 2});
        assert.equal(editor.can.inlineCompletionProvider, true);
        assert.deepEqual(editor.can.executeCommandProvider.commands, ["redline.edit"]);
    });

    test("completes at the cursor, in a list and inline, what the server completes", async () => {
        await editor.open(file);
        await editor.change([{range: {start: editor.end(), end: editor.end()}, text: "\n\ndef save(pa"}]);
        const list = await editor.complete();
        assert.ok(list.items.length > 0 && items(list).every((text) => text.startsWith("pa")), JSON.stringify(list));
        const inline = await editor.complete(editor.end(), "textDocument/inlineCompletion");
        assert.equal("pa" + inline.items[0].insertText, items(list).at(-1));
        const made = await (await fetch(`${server.url}/v1/redline/sessions`, {method: "POST",
            body: JSON.stringify({files: [{path: "load.py", text: editor.text()}]})})).json();
        const direct = await (await fetch(`${server.url}/v1/redline/sessions/${made.id}/complete`,
            {method: "POST", body: JSON.stringify({path: "load.py"})})).json();
        assert.equal(inline.items[0].insertText, direct.choices[0].text);
        await fetch(`${server.url}/v1/redline/sessions/${made.id}`, {method: "DELETE"});
    });

    test("edits the file by the smallest change of lines, and shows how far it is", async () => {
        await editor.rpc.sendNotification("textDocument/didClose", {textDocument: {uri}});
        await editor.open(file);
        editor.progress = [];
        assert.deepEqual(await editor.edit("Change the number 10 to 64."), {applied: true, edits: 1});
        assert.equal(editor.text(), file.replace("10", "64"));
        assert.deepEqual(editor.edits, [{range: {start: {line: 2, character: 0}, end: {line: 3, character: 0}},
            newText: "LIMIT = 64\n"}]);
        assert.equal(editor.progress[0].kind, "begin");
        assert.equal(editor.progress[0].cancellable, true);
        assert.equal(editor.progress.at(-1).kind, "end");
        // The next edit begins from the text that the editor changed.
        assert.deepEqual(await editor.edit("Change the number 64 to 7."), {applied: true, edits: 1});
        assert.equal(editor.text(), file.replace("10", "7"));
    });

    test("edits the lines of a selection, and the same in text with \\r\\n and wide characters", async () => {
        const lines = ["# \u{1F600} the \u{1D54F} limits", "LIMIT = 10", "MOST = 10", "# end \u{1F600}"];
        editor.set(uri, lines.join("\r\n") + "\r\n");
        const range = {start: {line: 1, character: 2}, end: {line: 1, character: 5}};
        const done = await editor.edit("Change the number 10 to 64.", {range});
        assert.deepEqual(done, {applied: true, edits: 1});
        assert.equal(editor.text(), lines.with(1, "LIMIT = 64").join("\r\n") + "\r\n");
    });

    test("offers the edit as an action", async () => {
        const actions = await editor.rpc.sendRequest("textDocument/codeAction",
            {textDocument: {uri}, range: {start: {line: 0, character: 0}, end: {line: 1, character: 0}}, context: {diagnostics: []}});
        assert.equal(actions[0].title, "Edit with instruction \u2026");
        assert.equal(actions[0].command.command, "redline.edit");
        assert.equal(actions[0].command.arguments[0].uri, uri);
    });

    test("ends an edit that is cancelled, by its progress and by its request", async () => {
        editor.set(uri, Array.from({length: 150}, (_, i) => `value_${i} = compute(${i}, "name", ${i * 31 % 17})\n`).join(""));
        editor.onProgress = ({token, value}) => {
            if (value.kind === "report") editor.rpc.sendNotification("window/workDoneProgress/cancel", {token});
        };
        await assert.rejects(editor.edit("Change the number 10 to 64."), {code: -32800});
        editor.onProgress = undefined;
        const source = new protocol.CancellationTokenSource();
        const cancelled = editor.edit("Change the number 10 to 64.", {}, source.token);
        await until(() => editor.progress.filter(({kind}) => kind === "begin").length >= 2);
        source.cancel();
        await assert.rejects(cancelled, {code: -32800});
        await server.until(async () => await server.metric("redline_answers_running") === 0);
    });

    test("leaves an edit out when the document changed meanwhile", async () => {
        const before = editor.text();
        const late = editor.edit("Change the number 10 to 64.");
        editor.change([{range: {start: {line: 0, character: 0}, end: {line: 0, character: 0}}, text: "# mine\n"}]);
        await assert.rejects(late, {code: -32801});
        assert.equal(editor.text(), "# mine\n" + before);
    });

    test("closes its sessions when it ends", async () => {
        const second = await Editor.start("--server", server.url);
        await second.open("x = 1\n");
        await second.complete();
        assert.deepEqual(await second.quit(), {code: 0, signal: null});
        await editor.rpc.sendNotification("textDocument/didClose", {textDocument: {uri}});
        await server.until(async () => (await (await fetch(`${server.url}/metrics`)).text()).match(/^redline_live_sessions\S* 0$/m));
    });
});

test("a server that wants a key is told of once", async () => {
    const key = "a-key-of-enough-letters-to-be-taken-0123456789";
    const folder = mkdtempSync(join(tmpdir(), "redline-lsp-"));
    writeFileSync(join(folder, "keys"), `somebody:${key}\n`, {mode: 0o600});
    const guarded = await Server.start("--api-key-file", join(folder, "keys"));
    try {
        const stranger = await Editor.start("--server", guarded.url);
        await stranger.open(file);
        await until(() => stranger.shown.length > 0);
        assert.match(stranger.shown[0], /--api-key/);
        assert.deepEqual((await stranger.complete()).items, []);
        assert.equal(stranger.shown.length, 1);
        await stranger.quit();
        const known = await Editor.start("--server", guarded.url, "--api-key", key);
        await known.open(file);
        await known.complete();
        assert.deepEqual(known.shown, []);
        await known.quit();
    } finally {
        await guarded.kill();
    }
});

test("believes no file that others could have planted, and its own server serves nobody else", async () => {
    const seen = [];
    const attacker = createServer((request, response) => {
        seen.push(`${request.method} ${request.url}`);
        response.end("{}");
    });
    await new Promise((resolve) => attacker.listen(0, "127.0.0.1", resolve));
    const usual = process.env.TMPDIR;
    process.env.TMPDIR = mkdtempSync(join(tmpdir(), "redline-planted-"));
    try {
        // Plants port files with a predictable name for all process ids that may come next.
        const next = spawnSync("sh", ["-c", "echo $$"], {encoding: "utf8"});
        for (let pid = Number(next.stdout); pid < Number(next.stdout) + 2000; ++pid) {
            writeFileSync(join(process.env.TMPDIR, `redline-port-${pid}`), `${attacker.address().port}\n`);
        }
        const editor = await Editor.start("--model", targetModel, "--threads", "1");
        await editor.open("PASSWORD = 'hunter2'\n");
        const own = readFileSync(`/proc/${editor.child.pid}/task/${editor.child.pid}/children`, "utf8").trim();
        const words = readFileSync(`/proc/${own}/cmdline`, "utf8");
        await until(async () => (await editor.complete({line: 0, character: 5})).items.length > 0, 120);
        assert.deepEqual(seen, []);
        // Every user of the machine can reach its port.
        const inodes = spawnSync("sh", ["-c", `ls -l /proc/${own}/fd | grep -o 'socket:\\[[0-9]*' | grep -o '[0-9]*$'`], {encoding: "utf8"}).stdout;
        const listening = readFileSync(`/proc/${own}/net/tcp`, "utf8").split("\n").map((line) => line.trim().split(/\s+/))
            .filter((f) => f[3] === "0A" && inodes.split("\n").includes(f[9])).map((f) => parseInt(f[1].split(":")[1], 16));
        assert.equal(listening.length, 1);
        const key = readFileSync(`/proc/${own}/environ`, "utf8").match(/REDLINE_API_KEY=([0-9a-f]{64})\0/)[1];
        assert.ok(!words.includes(key), "a command line can be read by all");
        const models = (headers) => fetch(`http://127.0.0.1:${listening[0]}/v1/models`, {headers});
        assert.equal((await models({})).status, 401);
        assert.equal((await models({Authorization: `Bearer ${key}`})).status, 200);
        await editor.quit();
    } finally {
        process.env.TMPDIR = usual ?? "";
        if (usual === undefined) delete process.env.TMPDIR;
        attacker.close();
    }
});

test("starts a server of its own, which ends with it", async () => {
    const editor = await Editor.start("--model", targetModel, "--draft", draftModel, "--threads", "1");
    await editor.open(file);
    // Completions are empty until it has loaded its model.
    await until(async () => (await editor.complete({line: 2, character: 5})).items.length > 0, 120);
    assert.deepEqual(await editor.edit("Change the number 10 to 64."), {applied: true, edits: 1});
    const children = () => readFileSync(`/proc/${editor.child.pid}/task/${editor.child.pid}/children`, "utf8").trim();
    const own = children();
    assert.match(own, /^\d+$/);
    editor.child.kill("SIGKILL");
    await editor.exited;
    const is_alive = () => {
        try {
            return !/^State:\s+Z/m.test(readFileSync(`/proc/${own}/status`, "utf8"));
        } catch {
            return false;
        }
    };
    await until(() => !is_alive());
});

test("starts its server again when it has ended, at another port and with another key", async () => {
    const editor = await Editor.start("--model", targetModel, "--draft", draftModel, "--threads", "1");
    await editor.open(file);
    // The server may be a child of any of its threads.
    const child = () => spawnSync("pgrep", ["-P", `${editor.child.pid}`], {encoding: "utf8"}).stdout.trim();
    const key = (pid) => readFileSync(`/proc/${pid}/environ`, "utf8").match(/REDLINE_API_KEY=([0-9a-f]{64})\0/)[1];
    await until(async () => (await editor.complete({line: 2, character: 5})).items.length > 0, 120);
    const first = child();
    const firstKey = key(first);
    process.kill(Number(first), "SIGKILL");
    await until(() => editor.shown.some((text) => text.includes("Redline's server has ended; a new one is starting")));
    await until(async () => (await editor.complete({line: 2, character: 5})).items.length > 0, 120);
    assert.deepEqual(await editor.edit("Change the number 10 to 64."), {applied: true, edits: 1});
    const second = child();
    assert.match(second, /^\d+$/);
    assert.notEqual(second, first);
    assert.notEqual(key(second), firstKey);
    await editor.quit();
    await until(() => child() === "");
});

/** A stand-in for a server that stores sessions' texts and answers as instructed. */
class StandIn {
    constructor() {
        this.texts = new Map();
        this.made = 0;
        this.calls = [];
        this.hold = [];  // responses that are withheld
        this.refuse = null;
        this.server = createServer((request, response) => this.take(request, response));
    }
    async listen(port = 0) {
        await new Promise((resolve) => this.server.listen(port, "127.0.0.1", resolve));
        this.port = this.server.address().port;
        this.url = `http://127.0.0.1:${this.port}`;
        return this;
    }
    close() {
        const closed = new Promise((resolve) => this.server.close(resolve));
        this.server.closeAllConnections();
        return closed;
    }
    async take(request, response) {
        const parts = [];
        for await (const part of request) parts.push(part);
        const body = parts.length ? JSON.parse(Buffer.concat(parts).toString()) : null;
        const call = `${request.method} ${request.url.replace("/v1/redline/sessions", "")}`;
        this.calls.push(call);
        const answer = (status, value, headers = {}) =>
            response.writeHead(status, {"Content-Type": "application/json", ...headers}).end(value ? JSON.stringify(value) : "");
        if (this.refuse) return answer(...this.refuse);
        const [, id, verb] = request.url.replace("/v1/redline/sessions", "").split("/");
        if (request.url === "/readyz") return answer(200, {status: "ok"});
        if (call === "POST ") {
            const made = `live-${++this.made}`;
            const [one] = body.files;
            this.texts.set(made, {text: Buffer.from(one.text), version: one.version});
            return answer(201, {id: made});
        }
        const session = this.texts.get(id);
        if (!session) return answer(404, {error: {message: "no session", code: "session_not_found"}});
        if (request.method === "DELETE") {
            this.texts.delete(id);
            return answer(204);
        }
        if (request.method === "PATCH") {
            if (body.base_version !== session.version) return answer(409, {error: {message: "stale"}});
            for (const {bytes, text} of body.edits) {
                const {start, end} = bytes ?? {start: 0, end: session.text.length};
                session.text = Buffer.concat([session.text.subarray(0, start), Buffer.from(text), session.text.subarray(end)]);
            }
            session.version = body.version;
            return answer(200, {});
        }
        if (this.isSlow) {
            this.hold.push(verb);
            return response.on("close", () => this.hold.splice(this.hold.indexOf(verb), 1));
        }
        return answer(200, {choices: [{text: "completed"}]});
    }
    get text() { return [...this.texts.values()].at(-1)?.text.toString(); }
}

describe("with a stand-in for a server", () => {
    let stand, editor;
    const begin = async (more = {}) => {
        stand = await new StandIn().listen();
        editor = await Editor.start("--server", stand.url, more);
    };
    const end = () => editor.quit();
    // The processes end however a test ended.
    afterEach(async () => {
        editor.child.kill("SIGKILL");
        await stand.close();
    });

    for (const units of ["utf-16", "utf-8"]) {
        test(`the server has the editor's text after any changes, counted in ${units}`, async () => {
            await begin({capabilities: {...everything, general: {positionEncodings: [units, "utf-16"]}}});
            assert.equal(editor.can.positionEncoding, units);
            const pieces = ["\r\n", "\n", "\u{1F600}", "\u00e9", "x", "", "\u{10FFFF}y\r\nz", "\t\ud83d\ude00\u0301"];
            let seed = 7;
            const random = (n) => (seed = seed * 1103515245 + 12345 & 0x7fffffff) % n;
            await editor.open("one\r\n\u{1F600}two\r\n");
            // Converts an offset in the editor's text to a position in the negotiated units.
            const to_units = (document, offset) => {
                const {line, character} = document.positionAt(offset);
                const begin = document.offsetAt({line, character: 0});
                const text = document.getText().slice(begin, begin + character);
                return {line, character: units === "utf-8" ? Buffer.byteLength(text) : character};
            };
            for (let i = 0; i < 400; ++i) {
                const old = editor.documents.get(uri);
                const whole = old.getText();
                const inside = (at) => (/[\udc00-\udfff]/.test(whole[at] ?? "") || (whole[at] === "\n" && whole[at - 1] === "\r") ? at - 1 : at);
                const a = inside(random(whole.length + 1));
                const b = inside(Math.min(whole.length, a + random(6)));
                const text = pieces[random(pieces.length)];
                const range = {start: to_units(old, a), end: to_units(old, Math.max(a, b))};
                const next = whole.slice(0, a) + text + whole.slice(Math.max(a, b));
                editor.documents.set(uri, TextDocument.create(uri, "python", old.version + 1, next));
                await editor.rpc.sendNotification("textDocument/didChange",
                    {textDocument: {uri, version: old.version + 1}, contentChanges: [{range, text}]});
            }
            await editor.complete({line: 0, character: 0});
            assert.equal(stand.text, editor.text());
            assert.ok(!stand.calls.slice(1).includes("POST "), "no change was refused");
            await end();
        });
    }

    test("a slow answer holds up neither changes nor cancelling", async () => {
        await begin();
        await editor.open("x = 1\n");
        await editor.complete();
        stand.isSlow = true;
        const source = new protocol.CancellationTokenSource();
        const slow = editor.complete(editor.end(), "textDocument/inlineCompletion", source.token);
        await until(() => stand.hold.includes("complete"));
        source.cancel();
        await assert.rejects(slow, {code: -32800});
        await until(() => stand.hold.length === 0);  // the server is notified, too
        const edit = editor.edit("Do it.").then(() => "", (e) => e.code);
        const second = editor.complete();
        await until(() => stand.hold.length === 2);
        editor.change([{range: {start: {line: 0, character: 4}, end: {line: 0, character: 5}}, text: "2"}]);
        await until(() => stand.text === "x = 2\n");
        assert.deepEqual((await second).items, []);
        assert.equal(await edit, -32801);
        await until(() => stand.hold.length === 0);
        // Only the last of many requests counts, so nothing piles up.
        const many = Array.from({length: 50}, () => editor.complete());
        for (const one of await Promise.all(many.slice(0, -1))) assert.deepEqual(one.items, []);
        await until(() => stand.hold.length === 1);
        await end();
        assert.deepEqual((await many.at(-1)).items, []);
    });

    test("a server that goes is told of once, and used again when it is back", async () => {
        await begin();
        await editor.open("x = 1\n");
        assert.deepEqual(items(await editor.complete({line: 0, character: 5})), ["1completed"]);
        const {port} = stand;
        await stand.close();
        editor.change([{range: {start: {line: 0, character: 4}, end: {line: 0, character: 5}}, text: "2"}]);
        await until(() => editor.shown.length > 0);
        assert.match(editor.shown[0], /Connection refused|closed/);
        assert.deepEqual((await editor.complete()).items, []);
        await assert.rejects(editor.edit("Do it."), {code: -32803, message: /cannot be used now/});
        editor.change([{range: {start: {line: 0, character: 4}, end: {line: 0, character: 5}}, text: "3"}]);
        assert.equal(editor.shown.length, 1);
        stand = await new StandIn().listen(port);
        await until(() => stand.text === "x = 3\n");
        await until(() => editor.shown.length === 2);
        assert.match(editor.shown[1], /can be used again/);
        assert.deepEqual(items(await editor.complete({line: 0, character: 5})), ["3completed"]);
        await end();
    });

    test("a server that is full, drains or is none is waited for", async () => {
        await begin();
        stand.refuse = [429, {error: {message: "You have 64 edit sessions.", code: "session_limit"}}, {"Retry-After": "1"}];
        await editor.open("x = 1\n");
        await until(() => editor.shown.length > 0);
        assert.match(editor.shown[0], /full: You have 64 edit sessions/);
        assert.deepEqual((await editor.complete()).items, []);
        stand.refuse = null;
        await until(() => stand.text === "x = 1\n");
        stand.refuse = [503, {error: {message: "The server is shutting down.", code: "draining"}}];
        assert.deepEqual((await editor.complete()).items, []);
        assert.match(editor.shown.at(-1), /shutting down/);
        stand.refuse = null;
        await until(async () => (await editor.complete()).items.length > 0);
        stand.refuse = [404, {error: {message: "no path"}}];
        assert.deepEqual((await editor.complete()).items, []);
        assert.match(editor.shown.at(-1), /not a Redline server, or an older version/);
        await end();
    });

    test("enormous, binary and one-line files", async () => {
        await begin();
        await editor.open("x".repeat((1 << 20) + 1));
        await until(() => editor.shown.length > 0);
        assert.match(editor.shown[0], /load\.py: expected a text of at most 1048576 bytes/);
        editor.change([{range: {start: {line: 0, character: 0}, end: {line: 0, character: 9}}, text: ""}]);
        assert.deepEqual((await editor.complete()).items, []);
        await editor.open("ELF\0\0", "file:///project/a.out");
        await until(() => editor.shown.length > 1);
        assert.deepEqual(stand.calls, []);
        const line = "\u{1F600}".repeat(1 << 17) + "x".repeat(1 << 18);
        await editor.open(line, "file:///project/line.js");
        editor.change([{range: {start: {line: 0, character: 1 << 18}, end: {line: 0, character: 1 << 18}}, text: "y"}], "file:///project/line.js");
        await until(() => stand.text === editor.text("file:///project/line.js"));
        assert.equal(editor.shown.length, 2);
        await end();
    });

    test("many documents have as many sessions as are good for a server", async () => {
        await begin();
        for (let i = 0; i < 40; ++i) await editor.open(`x = ${i}\n`, `file:///project/${i}.py`);
        await until(() => stand.calls.filter((call) => call === "POST ").length === 40);
        await until(() => stand.texts.size === 32);
        await end();
        assert.equal(stand.texts.size, 0);
    });
});

/** What bytes return, and how the process ends. */
function raw(bytes, ...args) {
    const done = spawnSync(program, ["lsp", ...args], {input: bytes});
    const text = done.stdout.toString();
    const answers = [];
    for (let at = 0; at < text.length;) {
        const length = Number(text.slice(at).match(/^Content-Length: (\d+)\r\n\r\n/)[1]);
        const begin = text.indexOf("\r\n\r\n", at) + 4;
        answers.push(JSON.parse(text.slice(begin, begin + length)));
        at = begin + length;
    }
    return {code: done.status, answers, err: done.stderr.toString()};
}
const frame = (value) => {
    const body = typeof value === "string" ? value : JSON.stringify({jsonrpc: "2.0", ...value});
    return `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
};
const hello = frame({id: 0, method: "initialize", params: {capabilities: {}}});
const goodbye = frame({id: 9, method: "shutdown"}) + frame({method: "exit"});

test("bytes that no editor sends get the errors of the protocol", () => {
    const codes = (bytes) => raw(bytes).answers.map((one) => one.error?.code ?? one.id);
    assert.deepEqual(codes(frame({id: 1, method: "shutdown"}) + hello + goodbye), [-32002, 0, 9]);
    assert.deepEqual(codes(hello + frame("{") + frame("[]") + frame("{}") + frame({id: 2, method: "no/such"}) +
        frame({id: 3, method: "textDocument/completion"}) + frame({id: 4, method: "shutdown"}) +
        frame({id: 5, method: "textDocument/completion", params: {}}) + frame({method: "exit"})),
        [0, -32700, -32600, -32600, -32601, -32602, 4, -32600]);
    const broken = raw(hello + "Content-Length: many\r\n\r\n{}" + goodbye);
    assert.equal(broken.code, 1);
    assert.equal(broken.answers.at(-1).error.code, -32700);
    assert.equal(raw(hello + goodbye).code, 0);
    assert.equal(raw(hello + frame({method: "exit"})).code, 1);
    assert.equal(raw(hello).code, 1);
    assert.equal(raw("").code, 1);
    const large = raw(hello + frame("x".repeat((64 << 20) + 1)) + goodbye);
    assert.equal(large.code, 0);
    assert.deepEqual(large.answers.map((one) => one.error?.code ?? one.id), [0, -32700, 9]);
});

test("flags that do not fit together are refused", () => {
    const both = raw("", "--server", "http://127.0.0.1:1", "--model", targetModel);
    assert.equal(both.code, 2);
    assert.match(both.err, /--model FILE or --server URL, found both/);
    assert.equal(raw("", "--server", "nonsense").code, 2);
});

test("Neovim completes and edits", async (t) => {
    if (spawnSync("nvim", ["--version"]).status !== 0) return t.skip("no nvim");
    const server = await Server.start("--draft", draftModel);
    try {
        const folder = mkdtempSync(join(tmpdir(), "redline-nvim-"));
        const path = join(folder, "load.py");
        writeFileSync(path, file);
        const settings = readFileSync(page, "utf8").match(/```lua\n([^]*?)```/)[1]
            .replace("{'redline', 'lsp', '--server', 'http://127.0.0.1:8080'}", `{'${program}', 'lsp', '--server', '${server.url}'}`);
        assert.ok(settings.includes(server.url));
        writeFileSync(join(folder, "init.lua"), settings);
        const done = spawnSync("nvim", ["--headless", "-u", join(folder, "init.lua"), "-i", "NONE", path, "-S", "nvim.lua"],
            {encoding: "utf8", timeout: 120_000, env: {...process.env, HOME: folder, XDG_CONFIG_HOME: folder, XDG_STATE_HOME: folder,
                XDG_DATA_HOME: folder, XDG_CACHE_HOME: folder, REDLINE_OUT: join(folder, "out.json")}});
        assert.equal(done.status, 0, done.stderr + done.stdout);
        const out = JSON.parse(readFileSync(join(folder, "out.json"), "utf8"));
        assert.deepEqual(out.actions, ["Edit with instruction \u2026", "Edit: Add type hints."]);
        assert.ok(out.items.length > 0 && out.items[0].startsWith("LIM"), JSON.stringify(out));
        assert.equal(out.edited, file.replace("10", "64"));
        assert.equal(out.line, "LIMIT = 7");
        assert.equal(out.typed.replaceAll("\0", "\n"), out.items[0]);
        assert.deepEqual(out.messages, []);
    } finally {
        await server.kill();
    }
});
