// Signals and files at the moments when they are least welcome.
import assert from "node:assert/strict";
import {after, before, test} from "node:test";
import {existsSync, mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {setTimeout as sleep} from "node:timers/promises";
import {spawnSync} from "node:child_process";
import {Program, Server, program, targetModel} from "./redline.mjs";

let folder;
before(() => { folder = mkdtempSync(join(tmpdir(), "redline-")); });
after(() => rmSync(folder, {recursive: true, force: true}));

const flags = ["--model", targetModel, "--listen", "127.0.0.1:0", "--threads", "1"];

test("SIGTERM ends the process cleanly while models are loaded", async () => {
    for (let i = 0; i < 8; ++i) {
        const port = join(folder, `port${i}`);
        const server = new Program("serve", ...flags, "--port-file", port);
        while (!existsSync(port)) await sleep(1);
        await sleep(i * 3);
        assert.deepEqual(await server.kill("SIGTERM"), {code: 0, signal: null});
    }
});

test("signals close after one another end the process cleanly", async () => {
    for (let i = 0; i < 4; ++i) {
        const server = await Server.start();
        server.child.kill("SIGTERM");
        await sleep(i);
        assert.deepEqual(await server.kill("SIGTERM"), {code: 0, signal: null});
    }
});

test("a port file that cannot be written is an error", async () => {
    const server = new Program("serve", ...flags, "--port-file", join(folder, "absent", "port"));
    assert.deepEqual(await server.exited, {code: 1, signal: null});
    assert.match(server.lines.join(""), /--port-file \S+absent\/port: cannot be written: No such file or directory/);
});

test("too little memory is an error and an end", async () => {
    for (const mebibytes of [80, 150, 200]) {
        const child = spawnSync("sh", ["-c", `ulimit -v ${mebibytes * 1024}; exec "$0" "$@"`, program, "serve", ...flags],
            {encoding: "utf8", timeout: 30000});
        assert.equal(child.error, undefined, `${mebibytes} MiB: it hangs`);
        assert.notEqual(child.status, 0);
        assert.notEqual(child.stderr, "");
    }
});
