// deploy/slurm/ under a real Slurm: starts munged, slurmctld and three slurmd (three nodes for Slurm) on this machine,
// in a temporary folder and at free ports. It submits a pool and more workers, cancels and requeues workers while
// clients ask, and compares every answer with the undisturbed one. Requires root and the packages of
// `deploy/install_packages.sh slurm`; takes 40 seconds.
import assert from "node:assert/strict";
import {execFileSync, spawn} from "node:child_process";
import {randomBytes} from "node:crypto";
import {closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync, writeFileSync} from "node:fs";
import {createServer} from "node:net";
import {cpus, hostname, tmpdir} from "node:os";
import {dirname, join, resolve} from "node:path";
import {setTimeout as sleep} from "node:timers/promises";
import {fileURLToPath} from "node:url";

if (process.getuid() !== 0) throw new Error("expected to run as root, which slurmd needs; run: sudo make slurm-test");
const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const program = resolve(process.env.REDLINE_BIN ?? join(root, "build/redline"));
const models = resolve(process.env.REDLINE_MODELS ?? join(root, "bench/demo_models"));
const folder = mkdtempSync(join(tmpdir(), "redline-slurm-"));
execFileSync("chmod", ["755", folder]);  // munged refuses a socket that other users cannot reach
const at = (...parts) => join(folder, ...parts);
const host = hostname().split(".")[0];
const nodes = ["node1", "node2", "node3"];  // all of them are this machine
const daemons = [];
const began = Date.now();
const say = (text) => console.log(`${((Date.now() - began) / 1000).toFixed(1).padStart(6)} s  ${text}`);

async function until(what, condition, seconds = 30) {
    for (let i = 0; i < seconds * 10; ++i) {
        const found = await condition();
        if (found) return found;
        await sleep(100);
    }
    throw new Error(`expected within ${seconds} s: ${what}`);
}

async function freePorts(count) {
    const servers = Array.from({length: count}, () => createServer().listen(0, "127.0.0.1"));
    await Promise.all(servers.map((one) => new Promise((listening) => one.once("listening", listening))));
    const ports = servers.map((one) => one.address().port);
    await Promise.all(servers.map((one) => new Promise((closed) => one.close(closed))));
    return ports;
}

function startDaemon(name, ...args) {
    const log = openSync(at(`${name}${args.includes("-N") ? `-${args.at(-1)}` : ""}.log`), "w");
    const child = spawn(name, args, {stdio: ["ignore", log, log], detached: true, env: {...process.env, SLURM_CONF: at("slurm.conf")}});
    closeSync(log);
    daemons.push(child);
    return child;
}

async function startSlurm() {
    const [ctldPort, ...slurmdPorts] = await freePorts(1 + nodes.length);
    for (const name of ["state", "logs"]) mkdirSync(at(name));
    writeFileSync(at("munge.key"), randomBytes(128), {mode: 0o600});
    // cred_expire: also the seconds after which a requeued job starts again.
    writeFileSync(at("slurm.conf"), `ClusterName=redline
SlurmctldHost=${host}(127.0.0.1)
SlurmctldPort=${ctldPort}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=${at("munge.socket")},cred_expire=5
CredType=cred/munge
StateSaveLocation=${at("state")}
SlurmdSpoolDir=${at("spool-%n")}
SlurmctldPidFile=${at("slurmctld.pid")}
SlurmdPidFile=${at("slurmd-%n.pid")}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,bf_interval=1,sched_interval=1
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
KillWait=30
${nodes.map((name, i) => `NodeName=${name} NodeHostname=${host} NodeAddr=127.0.0.1 Port=${slurmdPorts[i]} CPUs=8 RealMemory=1000`).join("\n")}
PartitionName=main Nodes=ALL Default=YES MaxTime=1:00:00 State=UP
`);
    startDaemon("munged", "--foreground", "--key-file", at("munge.key"), "--socket", at("munge.socket"),
        "--pid-file", at("munged.pid"), "--log-file", at("logs/munged.log"), "--seed-file", at("munged.seed"));
    await until("munged's socket", () => existsSync(at("munge.socket")), 10);
    startDaemon("slurmctld", "-D", "-c");
    for (const name of nodes) startDaemon("slurmd", "-D", "-N", name);
    await until("idle Slurm nodes", () => slurm("sinfo", "-h", "-o", "%t %D").trim() === `idle ${nodes.length}`);
}

const environment = {...process.env, SLURM_CONF: at("slurm.conf"), REDLINE_BIN: program, REDLINE_POOL: at("pool"), REDLINE_FRONT: "127.0.0.1",
    REDLINE_MODEL: join(models, "demo-target.gguf"), REDLINE_DRAFT: join(models, "demo-draft.gguf"), REDLINE_THREADS: "1",
    REDLINE_CACHE_DIR: at("cache")};
function slurm(name, ...args) {
    try {
        return execFileSync(name, args, {env: environment, cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"]});
    } catch (error) {
        if (name === "sinfo") return "";  // slurmctld does not listen yet
        throw error;
    }
}
const submit = (...args) => slurm("sbatch", "--parsable", `--output=${at("logs/%A_%a.log")}`, ...args).trim();
const jobState = (job) => slurm("squeue", "-h", "-o", "%T", "-j", job).trim();
const logs = () => readdirSync(at("logs")).filter((name) => name.includes("_"))
    .map((name) => readFileSync(at("logs", name), "utf8")).join("");
const count = (pattern) => [...logs().matchAll(pattern)].length;

const file = readFileSync(join(root, "bench/demo_files/inventory.py"), "utf8");
const instruction = readFileSync(join(root, "bench/demo_files/inventory.instruction"), "utf8").trim();
const messages = [{role: "user", content: `${instruction}\n\`\`\`python\n${file}\`\`\``}];
const method = (name) => ({redline: {speculation: {method: name}}});
const cases = [{temperature: 0, ...method("regular")}, {temperature: 0, ...method("blazedit")},
    {temperature: 0.9, seed: 4, ...method("regular")}, {temperature: 0.8, seed: 7, n: 2, ...method("lookup")}];

let url;
let headers;
/** Streams the answer to a case and returns the texts of its choices. */
async function ask(one) {
    const answer = await fetch(`${url}/v1/chat/completions`, {method: "POST", headers,
        body: JSON.stringify({model: "demo-target", messages, max_tokens: 400, stream: true, ...one})});
    assert.equal(answer.status, 200, await (answer.ok ? "" : answer.text()));
    const texts = [];
    for (const line of (await answer.text()).split("\n")) {
        if (!line.startsWith("data: {")) continue;
        const event = JSON.parse(line.slice(6));
        if (event.error) throw new Error(`a stream ended with ${line}`);
        for (const choice of event.choices) texts[choice.index] = (texts[choice.index] ?? "") + (choice.delta.content ?? "");
    }
    return JSON.stringify(texts);
}

/** Lets clients ask until a second after the accident; all answers must be the expected ones. */
async function compareDuring(what, expected, accident) {
    let ends = false;
    let answers = 0;
    const moved = count(/continues at/g);
    const clients = Array.from({length: 6}, async (_, client) => {
        for (let i = client; !ends; ++i, ++answers) assert.equal(await ask(cases[i % cases.length]), expected[i % cases.length]);
    });
    const disturbed = (async () => {
        await sleep(1000);
        await accident();
        await sleep(1000);
    })().finally(() => ends = true);
    await Promise.all([disturbed, ...clients]);
    say(`${what}: ${answers} streams with the expected bytes, ${count(/continues at/g) - moved} of them went on at another worker`);
}

async function check() {
    await startSlurm();
    say(`slurmctld and slurmd ${slurm("sinfo", "--version").trim()} run on ${cpus().length} processors`);

    const poolJob = submit("--nodes=2", "--ntasks=2", join(root, "deploy/slurm/redline.sbatch"));
    await until("the pool's address", () => existsSync(at("pool/url")) && existsSync(at("pool/api-key")));
    url = readFileSync(at("pool/url"), "utf8").trim();
    headers = {"Content-Type": "application/json", Authorization: `Bearer ${readFileSync(at("pool/api-key"), "utf8").trim()}`};
    await until("a ready pool", async () => (await fetch(`${url}/health`).catch(() => ({}))).status === 200);
    say(`the pool of job ${poolJob} is ready`);

    const expected = [];
    for (const one of cases) expected.push(await ask(one));
    say(`saved the bytes of ${cases.length} edits by two workers`);

    const array = submit("--array=1-3", join(root, "deploy/slurm/worker.sbatch"));
    await until("five workers", () => count(/node worker of/g) === 5);
    say(`job array ${array} has added three workers`);
    await compareDuring("five workers", expected, () => sleep(1000));

    await compareDuring("scancel of a worker", expected, async () => {
        slurm("scancel", `${array}_1`);
        await until("the end of the cancelled job", () => jobState(`${array}_1`) === "");
    });
    assert.equal(count(/handing over to other workers/g), 1);
    await compareDuring("scancel --batch --signal=KILL of a worker", expected, async () => {
        slurm("scancel", "--batch", "--signal=KILL", `${array}_2`);
        await until("the end of the killed job", () => jobState(`${array}_2`) === "");
    });
    assert.equal(count(/handing over to other workers/g), 1, "a killed worker has no time to hand over");
    await compareDuring("requeue of a worker", expected, async () => {
        slurm("scontrol", "requeue", `${array}_3`);
        await until("the requeued job to run again", () => count(/node worker of/g) === 6, 120);
    });
    assert.ok(count(/continues at/g) > 0, "no stream has moved, so nothing was shown");

    const last = Promise.all(cases.map(ask));
    await sleep(100);  // time for the requests to leave
    slurm("scancel", "--batch", "--signal=TERM", poolJob);
    assert.deepEqual(await last, expected);
    await until("the end of the drained pool", () => jobState(poolJob) === "", 90);
    assert.ok(!existsSync(at("pool/join")), "the pool has left its address");
    say("the pool's job has drained and ended");
    slurm("scancel", array);
    await until("an empty queue", () => slurm("squeue", "-h") === "", 90);
}

let failed = false;
try {
    await Promise.race([check(), ...["SIGINT", "SIGTERM"].map((signal) =>
        new Promise((_, reject) => process.once(signal, () => reject(new Error(`stopped by ${signal}`)))))]);
} catch (error) {
    failed = true;
    console.log(error);
    for (const name of readdirSync(folder).filter((one) => one.endsWith(".log"))) {
        console.log(`--- ${name}\n${readFileSync(at(name), "utf8").slice(-3000)}`);
    }
    if (existsSync(at("logs"))) console.log(`--- jobs\n${logs().slice(-6000)}`);
} finally {
    for (const daemon of daemons.reverse()) {
        daemon.kill();
        if (daemon.exitCode === null && daemon.signalCode === null) await new Promise((gone) => daemon.on("exit", gone));
    }
    // Ends the processes that a failure has left of jobs; their environment names this cluster.
    for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)) {
        try {
            if (readFileSync(`/proc/${pid}/environ`, "latin1").includes(`SLURM_CONF=${at("slurm.conf")}`)) process.kill(pid, "SIGKILL");
        } catch {}  // it has just ended
    }
    rmSync(folder, {recursive: true, force: true});
}
console.log(failed ? "failed" : "passed");
process.exit(failed ? 1 : 0);
