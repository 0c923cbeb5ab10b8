// The rules and the dashboard in deploy/monitoring, with a real Prometheus that scrapes a busy server. This needs
// Debian's package prometheus, without which the tests are skipped.
import assert from "node:assert/strict";
import {spawn, spawnSync} from "node:child_process";
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {createServer} from "node:net";
import {tmpdir} from "node:os";
import {dirname, join} from "node:path";
import {setTimeout as sleep} from "node:timers/promises";
import {test} from "node:test";
import {Server, edit, exampleConfig, file} from "./redline.mjs";

const folder = join(dirname(exampleConfig), "monitoring");
const absent = spawnSync("sh", ["-c", "command -v prometheus && command -v promtool"]).status !== 0 && "no prometheus here";

const freePort = () => new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
        const {port} = probe.address();
        probe.close(() => resolve(port));
    });
});

test("rules and configuration are valid, and alerts fire when they should", {skip: absent}, () => {
    for (const words of [["check", "config", "prometheus.yml"], ["check", "rules", "redline.rules.yml"], ["test", "rules", "redline.rules.test.yml"]]) {
        const run = spawnSync("promtool", words, {cwd: folder, encoding: "utf8"});
        assert.equal(run.status, 0, run.stdout + run.stderr);
    }
});

test("the dashboard is what its script writes", () => {
    const run = spawnSync("node", [join(folder, "make_dashboard.mjs")], {encoding: "utf8"});
    assert.equal(run.stdout, readFileSync(join(folder, "dashboard.json"), "utf8"));
});

test("every panel and every recorded series has data from a server at work", {skip: absent}, async () => {
    const server = await Server.start();
    const home = mkdtempSync(join(tmpdir(), "redline-prometheus-"));
    const port = await freePort();
    const rules = join(home, "rules.yml");
    // Rates over minutes would take the test minutes.
    const shorter = (text) => text.replaceAll(/\[(1|5|10|15)m\]/g, "[20s]");
    writeFileSync(rules, shorter(readFileSync(join(folder, "redline.rules.yml"), "utf8")));
    writeFileSync(join(home, "prometheus.yml"), JSON.stringify({global: {scrape_interval: "1s", evaluation_interval: "1s"},
        rule_files: [rules], scrape_configs: [{job_name: "redline", static_configs: [{targets: [new URL(server.url).host]}]}]}));
    const prometheus = spawn("prometheus", [`--config.file=${join(home, "prometheus.yml")}`, `--storage.tsdb.path=${join(home, "data")}`,
        `--web.listen-address=127.0.0.1:${port}`], {stdio: "ignore"});
    try {
        const query = async (expression) => {
            const answer = await fetch(`http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(expression)}`);
            const {status, data, error} = await answer.json();
            assert.equal(status, "success", `${expression}: ${error}`);
            return data.result;
        };
        const client = server.client();
        const work = async () => {
            await client.chat.completions.create({model: "demo-target", messages: edit, temperature: 0, max_tokens: 60});
            await fetch(`${server.url}/v1/chat/completions`, {method: "POST", body: "no JSON"});
            const {id} = await (await fetch(`${server.url}/v1/redline/sessions`, {method: "POST", headers: {"Content-Type": "application/json"},
                body: JSON.stringify({files: [{path: "a.py", text: file, version: 1}]})})).json();
            await fetch(`${server.url}/v1/redline/sessions/${id}`, {method: "DELETE"});
        };
        const {panels} = JSON.parse(readFileSync(join(folder, "dashboard.json"), "utf8"));
        const wanted = new Set(panels.flatMap((panel) => panel.targets ?? []).map((target) => target.expr
            .replaceAll("$__rate_interval", "20s").replaceAll(/"\$(job|instance)"/g, '".*"')));
        for (const [, name] of readFileSync(rules, "utf8").matchAll(/record: (\S+)/g)) wanted.add(name);
        assert.ok(wanted.size > 30);
        for (let round = 0; round < 60 && wanted.size > 0; ++round) {
            await work();
            await sleep(500);
            for (const expression of wanted) {
                const found = await query(expression).catch((error) => (round < 10 ? [] : Promise.reject(error)));
                if (found.some((series) => !Number.isNaN(Number(series.value[1])))) wanted.delete(expression);
            }
        }
        assert.deepEqual([...wanted], []);
    } finally {
        prometheus.kill("SIGKILL");
        await server.kill();
        rmSync(home, {recursive: true, force: true});
    }
});
