// Commands in the documents. Each block that calls the program (below deploy/ and on clients' and editors' pages, each block of commands) runs
// unchanged except for ports, or is listed here with the reason why not. A block that is not listed fails the test.
import assert from "node:assert/strict";
import {spawn, spawnSync} from "node:child_process";
import {copyFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync} from "node:fs";
import {createServer} from "node:net";
import {tmpdir} from "node:os";
import {dirname, join, resolve} from "node:path";
import {after, before, test} from "node:test";
import {Server, draftModel, exampleConfig, program, targetModel} from "./redline.mjs";

const root = resolve(dirname(exampleConfig), "..");
const files = ["README.md", ...["docs", "deploy"].flatMap((folder) => readdirSync(join(root, folder), {recursive: true}).filter((name) => name.endsWith(".md"))
    .map((name) => `${folder}/${name}`))].sort();

/** Returns blocks that call the program or a server: fenced ones without a language, and indented ones. */
function blocks(file) {
    const found = [];
    let fence;
    let lines = [];
    const isOfOthers = /^deploy\/|^docs\/(clients|editors)\//.test(file);
    const end = () => {
        const text = lines.join("\n");
        if ((isOfOthers && text.trim() !== "") || /(^|[\s(|])(build\/redline(-bench)?|redline) |^curl /m.test(text)) found.push({file, text});
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

// Identified by their content. `pasted`: at once, as one text; `says`: the output; `first`, `then`: commands before and after; `not`: why it is not run.
const systemd = "it wants root and a machine of its own: make systemd-test runs it in a container";
const agent = ([name, holds]) => ({file: `docs/clients/${name}.md`, holds, not: "an agent of another maker: make clients runs it, by agents.test.mjs"});
const known = [
    {file: "deploy/README.md", holds: "redline --config redline.toml", first: `cp ${root}/deploy/redline.toml .`, instead: [["/srv/models/target.gguf", "T.gguf"]], last: "&",
        then: "curl -s http://127.0.0.1:8080/readyz", says: /ok|ready/},
    {file: "deploy/README.md", holds: "--api-key-file keys.txt", first: "echo me:a-secret > keys.txt", last: "&",
        then: "curl -s http://127.0.0.1:8080/v1/models -H 'Authorization: Bearer a-secret'", says: /"T"/},
    {file: "deploy/README.md", holds: "make deb", not: "it wants root: make deb-test installs the packages in a Debian of their own"},
    {file: "deploy/README.md", holds: "sudo make oci", not: "it wants root: make oci-test runs the image"},
    {file: "deploy/README.md", holds: "install -D -m 644 deploy/redline.toml", not: systemd},
    {file: "deploy/README.md", holds: "systemctl enable --now redline-broker", not: systemd},
    {file: "deploy/README.md", holds: "redline keygen /etc/redline/curve", not: systemd},
    {file: "deploy/README.md", holds: "sbatch", not: "it wants a Slurm: make slurm-test runs it under one of its own"},
    {file: "deploy/README.md", holds: "kubectl", not: "it wants a cluster and a registry; tests/deploy/files.test.mjs checks the resources and the keys' names"},
    {file: "docs/benchmarks.md", holds: "bench edit", not: "studies take minutes; see tests/bench/studies"},
    {file: "docs/benchmarks.md", holds: "--replay", not: "studies take minutes; see tests/bench/studies"},
    ...Object.entries({anthropic: "claude -p", cline: "cline auth", codex: "codex exec", continue: "cn -p", kilo: "kilo run", opencode: "opencode run", "qwen-code": "qwen --yolo"})
        .map(agent),
    {file: "docs/clients/browsers.md", holds: "--cors-origin", instead: [["my-model", "T"]], last: "&",
        then: "curl -s -i http://127.0.0.1:8080/v1/models -H 'Origin: https://ui.example.org'", says: /access-control-allow-origin: https:\/\/ui\.example\.org/i},
    {file: "docs/editors/next-edits.md", holds: "next_edit_autocomplete", says: /"completion"/},
    {file: "docs/editors/vscode.md", holds: "--listen 127.0.0.1:11434", instead: [["my-model", "T"]], last: "&", then: "curl -s http://127.0.0.1:11434/api/tags", says: /"model": ?"T"/},
    {file: "docs/editors/zed.md", holds: "--alias", instead: [["my-model.gguf", "T.gguf"]], last: "&", then: "curl -s http://127.0.0.1:8080/v1/models", says: /"qwen2.5-coder"/},
    {file: "docs/start.md", holds: "huggingface.co", not: "it fetches gigabytes from another host"},
    {file: "docs/start.md", holds: "build/redline serve", pasted: true, says: /"ok"/},
    {file: "docs/start.md", holds: "/v1/chat/completions", says: /LIMIT = 64[^]*target_passes/},
    {file: "docs/start.md", holds: "build/redline edit", says: /^\+.*key/m},
    {file: "docs/start.md", holds: "build/redline top", says: /^redline \S+ +ready/},
    {file: "docs/start.md", holds: "build/redline inspect", says: /this CPU[^]*./},
    {file: "docs/team.md", holds: "fair_share", says: /"T"[^]*without a key: 401/},
    {file: "docs/tuning.md", holds: "build/redline doctor", says: /^redline \S+ +ready/m},
    {file: "docs/tuning.md", holds: "numactl", instead: [["numactl --cpunodebind=0 --membind=0 ", ""], ["numactl --cpunodebind=1 --membind=1 ", ""]],
        then: "curl -s http://127.0.0.1:8080/v1/models", says: /"T"/},
    {file: "docs/which-model.md", holds: "build/redline synth", instead: [["qwen2-0.5b", "tiny"]], says: /./},
    {file: "README.md", holds: "build/redline serve", pasted: true, says: /LIMIT = 64[^]*^[-+]/m},
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

/** Runs a shell script in a copy of what the documents assume; returns its output. */
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
        // A server that the block does not start is provided by the test.
        const starts = /redline (serve|gateway)\b(?!.*--print-config)/.test(script);
        const ports = {8080: starts ? await freePort() : Number(new URL(server.url).port), 8081: await freePort(), 7777: await freePort(), 11434: await freePort()};
        let text = script;
        for (const [from, to] of one.instead ?? []) text = text.replaceAll(from, to);
        text = text.replaceAll(/:(8080|8081|7777|11434)\b/g, (_, port) => `:${ports[port]}`);
        if (one.without) text = text.split("\n").filter((line) => !one.without.test(line)).join("\n");
        // A user who pastes line by line is slower than a script.
        if (!one.pasted) text = text.replaceAll(/&$/gm, "&\nstarted");
        const prologue = `set -e
export PATH="$PWD:$PATH" HOME="$PWD" REDLINE_LISTEN=127.0.0.1:${ports[8080]} REDLINE_THREADS=1 REDLINE_SERVER=http://127.0.0.1:${ports[8080]}
unset REDLINE_CONFIG
started() { sleep 1; }
ready() { for i in $(seq 300); do curl -s -o /dev/null --fail "$1" && return 0; sleep 0.1; done; return 1; }
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n`;
        const waits = starts && !one.pasted ? text.replace(/(redline (?:serve|gateway)[^\n]*&)\nstarted/, (line) =>
            `${line.replace(/\nstarted$/, "")}\nready http://127.0.0.1:${/listen 127.0.0.1:(\d+)/.exec(line)?.[1] ?? ports[8080]}/readyz`) : text;
        const then = one.then ? `\n${one.then.replaceAll(/:(8080|8081|11434)\b/g, (_, port) => `:${ports[port]}`)}\n` : "\n";
        // REDLINE_LISTEN applies to the gateway and the server; a broker's own flag takes precedence.
        const child = spawn("bash", ["-c", `${prologue}${one.first ?? ""}\n${waits}${then}`], {cwd: folder, stdio: ["ignore", "pipe", "pipe"]});
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
    test(`${file}: ${(text.split("\n").find((line) => line.includes("redline") || line.startsWith("curl")) ?? text.split("\n")[0]).slice(0, 60)}`,
        {skip: one?.not}, async () => {
            assert.ok(one, `this block is neither run nor named with a reason:\n${text}`);
            const script = one.last ? `${text.trimEnd()} ${one.last}` : text;
            const printed = await run(script, one, server);
            if (one.says) assert.match(printed, one.says);
        });
}

const labelled = (file, language) => [...readFileSync(join(root, file), "utf8").matchAll(new RegExp("^```" + language + "\\n([^]*?)^```", "gm"))].map((match) => match[1]);

test("settings in JSON can be read, and the server's in TOML are options", () => {
    let count = 0;
    for (const file of files) {
        for (const text of labelled(file, "json")) assert.ok(++count && JSON.parse(text), file);
        for (const text of labelled(file, "toml").filter((one) => one.startsWith("[serve]"))) {
            const folder = mkdtempSync(join(tmpdir(), "redline-documents-"));
            writeFileSync(join(folder, "keys"), "me:a-secret\n");
            writeFileSync(join(folder, "redline.toml"), text.replace("/srv/models/target.gguf", resolve(targetModel)).replace("/srv/models/draft.gguf", resolve(draftModel))
                .replace("/etc/redline/keys", join(folder, "keys")));
            const read = spawnSync(program, ["--config", join(folder, "redline.toml"), "serve", "--print-config"], {encoding: "utf8"});
            rmSync(folder, {recursive: true, force: true});
            assert.equal(read.status, 0, `${file}: ${read.stderr}`);
            ++count;
        }
    }
    assert.ok(count >= 6);
});

test("a page that calls the model my-model says what that stands for", () => {
    const pages = files.filter((file) => file.startsWith("docs/clients/") && /my-model(?!\.gguf)/.test(readFileSync(join(root, file), "utf8")));
    assert.ok(pages.length >= 12);
    for (const file of pages) assert.match(readFileSync(join(root, file), "utf8"), /`my-model`[^.]*`GET \/v1\/models` lists/, file);
});

test("every block that is named here is in the documents", () => {
    const all = files.flatMap(blocks);
    for (const one of known) assert.ok(all.some(({file, text}) => file === one.file && text.includes(one.holds)), `${one.file}: ${one.holds}`);
});
