// `redline top` against a busy server, one that is gone, and one that requires a key.
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {mkdtempSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {after, before, test} from "node:test";
import {Server, draftModel, program} from "./redline.mjs";

let server;
before(async () => { server = await Server.start("--draft", draftModel); });
after(() => server?.kill());

/** Runs it until it ends, or until its output matches. */
function top(args, enough) {
    const child = spawn(program, ["top", ...args], {stdio: ["ignore", "pipe", "pipe"]});
    let out = "", err = "";
    child.stdout.setEncoding("utf8").on("data", (text) => {
        out += text;
        if (enough?.test(out)) child.kill("SIGTERM");
    });
    child.stderr.setEncoding("utf8").on("data", (text) => { err += text; });
    return new Promise((resolve) => child.on("exit", (code) => resolve({code, out, err})));
}

test("prints once how a server stands", async () => {
    const written = await fetch(`${server.url}/v1/completions`, {method: "POST", headers: {"Content-Type": "application/json"},
        body: JSON.stringify({prompt: "def area(width, height):\n", max_tokens: 40, temperature: 0, ignore_eos: true})});
    assert.equal(written.status, 200);
    const {code, out} = await top(["--server", server.url, "--once"]);
    assert.equal(code, 0);
    assert.match(out, /^redline \S+ {3}ready {3}up \d+ s {3}demo-target\n/);
    assert.match(out, /\d+ tokens\/s/);
    assert.match(out, /\nworker +running +waiting +pages/);
    assert.ok(!out.includes("\x1b"), "no escape sequences where there is no terminal");
});

test("prints lines where it is no terminal", async () => {
    const {out} = await top(["--server", server.url], /busy\n.*%\n.*%\n/);
    assert.match(out, /^ tokens\/s +running +waiting +pages held +accepted +passes\/s +rows\/pass +busy\n( +\d+){4} /);
});

test("explains its words, and leaves what it showed on the terminal", async () => {
    const child = spawn("script", ["-qefc", `${program} top --server ${server.url}`, "/dev/null"], {stdio: ["pipe", "pipe", "ignore"]});
    let out = "";
    let pressed = "";
    child.stdout.setEncoding("utf8").on("data", (text) => {
        out += text;
        const press = (key, when) => { if (!pressed.includes(key) && when) { pressed += key; child.stdin.write(key); } };
        press("?", out.includes("q quit"));
        press("q", out.includes("cost off         difference"));
    });
    await new Promise((resolve) => child.on("exit", resolve));
    const after = out.slice(out.lastIndexOf("\x1b[?1049l"));
    assert.match(after, /redline \S+ {3}ready {3}up \d+ s {3}demo-target/);
});

test("tells who cannot be watched, and why", async () => {
    const gone = await top(["--server", "http://127.0.0.1:1", "--once"]);
    assert.equal(gone.code, 69);
    assert.match(gone.err, /Connection refused/);
    const folder = mkdtempSync(join(tmpdir(), "redline-top-"));
    writeFileSync(join(folder, "keys"), "somebody:a-key-of-enough-letters-to-be-taken-0123456789\n", {mode: 0o600});
    const guarded = await Server.start("--api-key-file", join(folder, "keys"));
    try {
        const stranger = await top(["--server", guarded.url, "--once"]);
        assert.notEqual(stranger.code, 0);
        assert.match(stranger.err, /--api-key/);
        assert.equal((await top(["--server", guarded.url, "--once", "--api-key", "a-key-of-enough-letters-to-be-taken-0123456789"])).code, 0);
    } finally {
        await guarded.kill();
    }
});
