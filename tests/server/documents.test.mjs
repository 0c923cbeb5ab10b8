// Commands in the documents: each block that calls the program is run as it stands, but for ports, or is named here with the
// reason why not. A block that is not named fails the test.
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {copyFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync} from "node:fs";
import {createServer} from "node:net";
import {tmpdir} from "node:os";
import {dirname, join, resolve} from "node:path";
import {after, before, test} from "node:test";
import {Server, draftModel, exampleConfig, program, targetModel} from "./redline.mjs";

const root = resolve(dirname(exampleConfig), "..");
const files = ["README.md", ...readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`)];

/** Blocks between fences without a language, and indented ones, that call the program or a server. */
function blocks(file) {
    const found = [];
    let fence;
    let lines = [];
    const end = () => {
        const text = lines.join("\n");
        if (/(^|[\s(|])(build\/redline(-bench)?|redline) |^curl /m.test(text)) found.push({file, text});
        lines = [];
    };
    for (const line of readFileSync(join(root, file), "utf8").split("\n")) {
        if (line.startsWith("```")) {
            const opens = fence === undefined;
            if (opens ? lines.length > 0 : fence === "```") end();
            lines = [];
            fence = opens ? line : undefined;
        } else if (fence !== undefined) {
            lines.push(line);
        } else if (line.startsWith("    ")) {
            lines.push(line.slice(4));
        } else if (lines.length > 0) {
            end();
        }
    }
    return found;
}

// By what a block holds. `says`: what it prints; `then`: what is asked afterwards; `not`: why it is not run.
const known = [
    {file: "README.md", holds: "build/redline serve", says: /LIMIT = 64[^]*^[-+]/m},
    {file: "README.md", holds: "build/redline broker", then: "curl -s http://127.0.0.1:8081/v1/models", says: /"demo-target"/},
    {file: "docs/api.md", holds: '"blazedit"', says: /LIMIT = 64/},
    {file: "docs/api.md", holds: '"echo": true', says: /"token_logprobs": ?\[null,/},
    {file: "docs/api.md", holds: "Last-Event-ID: AQ...", not: "it goes on with a stream that there is not; see resume.test.mjs"},
    {file: "docs/api.md", holds: "--compat vllm", not: "an address of another machine; see vllm.test.mjs"},
    {file: "docs/api.md", holds: "/v1/redline/status", says: /^data: \{"server":/},
    {file: "docs/command-line.md", holds: "redline edit stock", says: /./, then: "grep -l key stock/first.py"},
    {file: "docs/command-line.md", holds: "source <(", not: "lines for the configuration of three shells; see completions_test.cpp"},
    {file: "docs/command-line.md", holds: "man -l -", then: "ls man1 && redline man serve | head -3", says: /redline-serve\.1\n[^]*REDLINE\\-SERVE/, without: /man -l/},
    {file: "docs/configuration.md", holds: "--print-config > redline.toml", then: "curl -s http://127.0.0.1:8080/readyz", says: /ok|ready/, last: "&"},
    {file: "docs/edit-sessions.md", holds: "build/redline session new", says: /./},
    {file: "docs/editors.md", holds: "redline lsp --server", not: "they wait for an editor; see lsp.test.mjs"},
    {file: "docs/models.md", holds: "build/redline synth", not: "it writes gigabytes; see synth_test.cpp"},
    {file: "docs/operations.md", holds: "redline top", says: /^redline \S+ +ready/},
    {file: "docs/pools.md", holds: "ipc://run/pool", then: "curl -s http://127.0.0.1:8080/v1/models", says: /"T"/},
    {file: "docs/pools.md", holds: "keygen keys", then: "curl -s http://127.0.0.1:8080/v1/models", says: /"T"/,
        instead: [["0.0.0.0:7777", "127.0.0.1:7777"], ["BROKER", "127.0.0.1"]]},
    {file: "docs/pools.md", holds: "--slo-ttft-ms", not: "a study, shown with what it printed on one machine; see tests/bench/studies/fleet"},
    {file: "docs/pools.md", holds: "bench simulate", not: "a study, shown with what it printed on one machine; see tests/bench/studies/fleet"},
    {file: "docs/programs.md", holds: "redline copy oracle OLD NEW", not: "a summary of what there is; see copy_test.cpp"},
];

const freePort = () => new Promise((done) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
        const {port} = probe.address();
        probe.close(() => done(port));
    });
});

/** Runs a script of the shell in a copy of what the documents assume; what it printed. */
async function run(script, one, server) {
    const folder = mkdtempSync(join(tmpdir(), "redline-documents-"));
    try {
        mkdirSync(join(folder, "build"));
        for (const name of ["build/redline", "redline"]) symlinkSync(resolve(program), join(folder, name));
        symlinkSync(resolve(targetModel), join(folder, "T.gguf"));
        symlinkSync(resolve(draftModel), join(folder, "D.gguf"));
        mkdirSync(join(folder, "bench/demo_files"), {recursive: true});
        symlinkSync(resolve(dirname(targetModel)), join(folder, "bench/demo_models"));
        for (const name of ["inventory.py", "inventory.instruction"])
            copyFileSync(join(root, "bench/demo_files", name), join(folder, "bench/demo_files", name));
        // A server that the block does not start is the test's.
        const starts = /redline (serve|gateway)\b(?!.*--print-config)/.test(script);
        const ports = {8080: starts ? await freePort() : Number(new URL(server.url).port), 8081: await freePort(), 7777: await freePort()};
        let text = script;
        for (const [from, to] of one.instead ?? []) text = text.replaceAll(from, to);
        text = text.replaceAll(/:(8080|8081|7777)\b/g, (_, port) => `:${ports[port]}`);
        if (one.without) text = text.split("\n").filter((line) => !one.without.test(line)).join("\n");
        // Who pastes line by line is slower than a script.
        text = text.replaceAll(/&$/gm, "&\nstarted");
        const prologue = `set -e
export PATH="$PWD:$PATH" HOME="$PWD" REDLINE_LISTEN=127.0.0.1:${ports[8080]} REDLINE_THREADS=1 REDLINE_SERVER=http://127.0.0.1:${ports[8080]}
unset REDLINE_CONFIG
started() { sleep 1; }
ready() { for i in $(seq 300); do curl -s -o /dev/null --fail "$1" && return 0; sleep 0.1; done; return 1; }
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n`;
        const waits = starts ? text.replace(/(redline (?:serve|gateway)[^\n]*&)\nstarted/, (line) =>
            `${line.replace(/\nstarted$/, "")}\nready http://127.0.0.1:${/listen 127.0.0.1:(\d+)/.exec(line)?.[1] ?? ports[8080]}/readyz`) : text;
        const then = one.then ? `\n${one.then.replaceAll(/:(8080|8081)\b/g, (_, port) => `:${ports[port]}`)}\n` : "\n";
        // REDLINE_LISTEN is the gateway's and the server's; a broker's own flag goes before it.
        const child = spawn("bash", ["-c", prologue + waits + then], {cwd: folder, stdio: ["ignore", "pipe", "pipe"]});
        let out = "", err = "";
        child.stdout.setEncoding("utf8").on("data", (more) => { out += more; });
        child.stderr.setEncoding("utf8").on("data", (more) => { err += more; });
        const deadline = setTimeout(() => child.kill("SIGTERM"), 120_000);
        const code = await new Promise((done) => child.on("exit", done));
        clearTimeout(deadline);
        assert.equal(code, 0, `${script}\n--- printed\n${out}\n--- and on standard error\n${err}`);
        return out;
    } finally {
        rmSync(folder, {recursive: true, force: true});
    }
}

let server;
before(async () => { server = await Server.start("--draft", draftModel); });
after(() => server?.kill());

for (const {file, text} of files.flatMap(blocks)) {
    const one = known.find((other) => other.file === file && text.includes(other.holds));
    test(`${file}: ${text.split("\n").find((line) => line.includes("redline") || line.startsWith("curl"))?.slice(0, 60)}`,
        {skip: one?.not}, async () => {
            assert.ok(one, `this block is neither run nor named with a reason:\n${text}`);
            const script = one.last ? `${text.trimEnd()} ${one.last}` : text;
            const printed = await run(script, one, server);
            if (one.says) assert.match(printed, one.says);
        });
}

test("every block that is named here is in the documents", () => {
    const all = files.flatMap(blocks);
    for (const one of known) assert.ok(all.some(({file, text}) => file === one.file && text.includes(one.holds)), `${one.file}: ${one.holds}`);
});
