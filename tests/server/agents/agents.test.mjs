// Coding agents, unmodified and non-interactive, each on a small repository of its own, without a network beyond this
// machine. The model's answers are scripted (`--script`) with each agent's own tools; everything else is as for a user:
// their settings are those of docs/clients/. REDLINE_AGENTS: only these names, separated by commas. REDLINE_AGENTS_LOG:
// a file for their requests (which show the tools of a new version).
import assert from "node:assert/strict";
import {execFileSync, spawn} from "node:child_process";
import {appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync} from "node:fs";
import {createServer, request} from "node:http";
import {tmpdir} from "node:os";
import {dirname, join, resolve} from "node:path";
import {after, before, describe, test} from "node:test";
import {copyWith} from "./gguf.mjs";
import {Server, program, targetModel} from "./redline.mjs";
import {hermes} from "./tool_templates.mjs";

const model = "my-model";
const source = 'def greet(name):\n    """Says "hello"."""\n    return "hello " + name\n';
const edited = source.replace('return "hello "', 'return "good day, dear "');
const [was, becomes] = [source, edited].map((text) => text.split("\n")[2]);
const done = "Done: it is polite now.";
const seconds = 240;
const bin = (name) => join("node_modules", ".bin", name);

const opencodeSettings = (url) => JSON.stringify({
    autoupdate: false,
    share: "disabled",
    model: `redline/${model}`,
    small_model: `redline/${model}`,
    provider: {redline: {npm: "@ai-sdk/openai-compatible", name: "Redline", options: {baseURL: `${url}/v1`},
                         models: {[model]: {name: model, limit: {context: 131072, output: 4096}}}}},
}, null, 2);

// files: settings below the home folder. steps: the calls that lead to the edit, given the file's full path.
const agents = {
    opencode: {
        // An install script, which is not run here, would put the package's own launcher in place.
        command: join("node_modules", `opencode-${process.platform}-${process.arch}`, "bin", "opencode"),
        args: (prompt) => ["run", prompt],
        files: (url) => ({".config/opencode/opencode.json": opencodeSettings(url)}),
        env: {OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
              OPENCODE_DISABLE_DEFAULT_PLUGINS: "1"},
        steps: (path) => [["read", {filePath: path}], ["edit", {filePath: path, oldString: was, newString: becomes}]],
    },
    kilo: {
        command: bin("kilo"),
        args: (prompt) => ["run", "--auto", prompt],
        files: (url) => ({".config/kilo/kilo.json": opencodeSettings(url)}),
        env: {KILO_DISABLE_AUTOUPDATE: "1", KILO_DISABLE_MODELS_FETCH: "1", KILO_DISABLE_LSP_DOWNLOAD: "1",
              KILO_TELEMETRY_LEVEL: "off"},
        steps: (path) => [["read", {filePath: path}], ["edit", {filePath: path, oldString: was, newString: becomes}]],
    },
    qwen: {
        command: bin("qwen"),
        args: (prompt) => ["--yolo", prompt],
        files: () => ({".qwen/settings.json": JSON.stringify({
            general: {enableAutoUpdate: false}, privacy: {usageStatisticsEnabled: false}, telemetry: {enabled: false},
            security: {auth: {selectedType: "openai"}}, model: {name: model}}, null, 2)}),
        env: (url) => ({OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: "none", OPENAI_MODEL: model}),
        steps: (path) => [["read_file", {file_path: path}],
                          ["edit", {file_path: path, old_string: was, new_string: becomes}]],
    },
    cline: {
        command: bin("cline"),
        setup: (url) => ["auth", "-p", "openai-compatible", "-k", "none", "-m", model, "-b", `${url}/v1`],
        args: (prompt) => [prompt],
        env: {CLINE_TELEMETRY_DISABLED: "1", CLINE_NO_AUTO_UPDATE: "1", CLINE_SESSION_BACKEND_MODE: "local"},
        steps: (path) => [["read_files", {files: [{path}]}], ["editor", {path, old_text: was, new_text: becomes}]],
    },
    continue: {
        command: bin("cn"),
        args: (prompt, home) => ["-p", "--auto", "--config", join(home, ".continue/config.yaml"), prompt],
        files: (url) => ({".continue/config.yaml": `name: Redline
version: 0.0.1
schema: v1
models:
  - name: redline
    provider: openai
    model: ${model}
    apiBase: ${url}/v1
    apiKey: none
    capabilities: [tool_use]
    roles: [chat, edit, apply]
    defaultCompletionOptions:
      contextLength: 131072
      maxTokens: 4096
`}),
        env: {CONTINUE_TELEMETRY_ENABLED: "0", CONTINUE_CLI_AUTO_UPDATED: "1"},
        steps: (path) => [["Read", {filepath: path}], ["Edit", {file_path: path, old_string: was, new_string: becomes}]],
    },
    claude: {
        command: join("node_modules", "@anthropic-ai", `claude-code-${process.platform}-${process.arch}`, "claude"),
        args: (prompt) => ["-p", prompt, "--permission-mode", "acceptEdits"],
        env: (url) => ({ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "none", ANTHROPIC_MODEL: model,
                        ANTHROPIC_SMALL_FAST_MODEL: model, CLAUDE_CODE_MAX_CONTEXT_TOKENS: "131072",
                        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1"}),
        steps: (path) => [["Read", {file_path: path}], ["Edit", {file_path: path, old_string: was, new_string: becomes}]],
    },
    codex: {
        command: bin("codex"),
        args: (prompt) => ["exec", "--sandbox", "workspace-write", prompt],
        files: (url) => ({".codex/config.toml": `model = "${model}"
model_provider = "redline"
check_for_update_on_startup = false

[model_providers.redline]
name = "Redline"
base_url = "${url}/v1"
wire_api = "responses"

[analytics]
enabled = false
`}),
        // A model that the agent does not know gets no tool for patches, and has to call apply_patch in the shell.
        steps: (path) => [
            ["exec_command", {cmd: `cat ${path}`}],
            ["exec_command", {cmd: "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: greet.py\n@@\n" +
                                   `-${was}\n+${becomes}\n*** End Patch\nEOF`}],
        ],
    },
};

const promptOf = (name) => `Make the greeting in greet.py polite, ${name}.`;

/** What the model says to an agent: a call after each result; the words before a call show how far the agent is. */
function scriptOf(name, steps) {
    const said = (i) => `Polite ${name}, step ${i + 1}.`;
    const entries = steps.map(([tool, args], i) => ({
        when: [promptOf(name), "# Tools\n", ...steps.slice(0, i).map((_, before) => said(before))],
        say: `${said(i)}\n<tool_call>\n{"name": "${tool}", "arguments": ${JSON.stringify(args)}}\n</tool_call>`,
    }));
    return [{when: [promptOf(name), "<tool_response>", ...steps.map((_, i) => said(i))], say: done}, ...entries.reverse()];
}

/** A proxy between the agents and the server that records their messages. */
function recorder(target, log) {
    return createServer((from, to) => {
        const parts = [];
        from.on("data", (part) => parts.push(part)).on("end", () => {
            const body = Buffer.concat(parts);
            const line = {method: from.method, path: from.url, body: body.toString()};
            const onward = request(target + from.url, {method: from.method, headers: from.headers}, (answer) => {
                line.status = answer.statusCode;
                to.writeHead(answer.statusCode, answer.headers);
                answer.on("data", (part) => { line.answer = (line.answer ?? "") + part; });
                answer.on("end", () => appendFileSync(log, JSON.stringify(line) + "\n")).pipe(to);
            });
            onward.on("error", () => to.destroy());
            to.on("close", () => onward.destroy());
            onward.end(body);
        });
    });
}

/** Runs a program to its end, or stops it with all its children; returns its output. */
async function run(command, args, options) {
    const child = spawn(resolve(command), args, {...options, detached: true, stdio: ["ignore", "pipe", "pipe"]});
    let out = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => { out += text; });
    const stop = () => { try { process.kill(-child.pid, "SIGKILL"); } catch { /* all of it has ended */ } };
    const timer = setTimeout(stop, seconds * 1000);
    const code = await new Promise((end) => child.on("error", () => end(-1)).on("exit", (exit, signal) => end(exit ?? signal)));
    clearTimeout(timer);
    stop();
    return {code, out};
}

const wanted = Object.entries(agents).filter(([name]) => (process.env.REDLINE_AGENTS || name).split(",").includes(name));
let folder;
let server;
let proxy;
let url;

before(async () => {
    folder = mkdtempSync(join(tmpdir(), "redline-agents-"));
    // Their prompts have tens of thousands of tokens, which a model of this size reads quickly.
    const plain = join(folder, "plain.gguf"), tools = join(folder, "tools.gguf");
    execFileSync(program, ["synth", "--shape", "tiny", "--tokenizer", targetModel, "--vocabulary", "4096", "--layers", "1",
                           "--width", "64", "--heads", "1", "--kv-heads", "1", "--head-dim", "64", "--feed-forward", "64",
                           "--context-length", "131072", plain]);
    copyWith(plain, tools, {"tokenizer.chat_template": hermes});
    const script = wanted.flatMap(([name, agent]) => scriptOf(name, agent.steps(join(folder, name, "repo", "greet.py"))));
    writeFileSync(join(folder, "script.json"), JSON.stringify([...script, {when: [], say: "Nothing to do."}]));
    server = await Server.start("--model", tools, "--alias", model, "--script", join(folder, "script.json"));
    url = server.url;
    if (process.env.REDLINE_AGENTS_LOG) {
        proxy = recorder(server.url, process.env.REDLINE_AGENTS_LOG).listen(0, "127.0.0.1");
        await new Promise((listening) => proxy.on("listening", listening));
        url = `http://127.0.0.1:${proxy.address().port}`;
    }
});
after(async () => {
    proxy?.close();
    await server?.kill();
    if (folder) rmSync(folder, {recursive: true, force: true, maxRetries: 5});
});

const refusals = async () => {
    const text = await (await fetch(`${server.url}/metrics`)).text();
    return [...text.matchAll(/^redline_http_responses_total\{[^}]*status="[45]xx"\} (\d+)$/gm)].reduce((n, m) => n + Number(m[1]), 0);
};

describe("agents edit a file by their own tools", () => {
    for (const [name, agent] of wanted) {
        test(name, {timeout: (seconds + 30) * 1000, skip: !existsSync(agent.command) && "not for this platform"}, async () => {
            const home = join(folder, name, "home"), repo = join(folder, name, "repo");
            mkdirSync(home, {recursive: true});
            mkdirSync(repo, {recursive: true});
            writeFileSync(join(repo, "greet.py"), source);
            const git = (...args) => execFileSync("git", ["-C", repo, "-c", "user.name=a", "-c", "user.email=a@b", ...args],
                                                  {encoding: "utf8"});
            git("init", "--quiet");
            git("add", ".");
            git("commit", "--quiet", "--message", "one");
            for (const [path, text] of Object.entries(agent.files?.(url) ?? {})) {
                mkdirSync(dirname(join(home, path)), {recursive: true});
                writeFileSync(join(home, path), text);
            }
            const more = typeof agent.env === "function" ? agent.env(url) : agent.env;
            const options = {cwd: repo, env: {PATH: process.env.PATH, HOME: home, TERM: "dumb", ...more}};
            const refusedBefore = await refusals();
            if (agent.setup) {
                const {code, out} = await run(agent.command, agent.setup(url), options);
                assert.equal(code, 0, out);
            }
            const {code, out} = await run(agent.command, agent.args(promptOf(name), home), options);
            const story = `${out}\n${server.lines.join("")}`;
            assert.equal(code, 0, story);
            assert.equal(readFileSync(join(repo, "greet.py"), "utf8"), edited, story);
            assert.ok(out.includes(done), story);
            assert.equal(git("status", "--porcelain"), " M greet.py\n", story);
            assert.deepEqual(readdirSync(repo).sort(), [".git", "greet.py"]);
            assert.equal(await refusals(), refusedBefore, story);
        });
    }
});
