// Checks deploy/: Kubernetes resources against the API's types and schemas, systemd units with systemd-analyze, the
// options of all of them against the program's own help, and the image's packages against the libraries that the
// program is linked with.
import assert from "node:assert/strict";
import {execFileSync, spawnSync} from "node:child_process";
import {mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join, resolve} from "node:path";
import {test} from "node:test";
import ts from "typescript";
import {parse, parseAllDocuments} from "yaml";

const deploy = join(process.env.REDLINE_SOURCE, "deploy");
const program = resolve(process.env.REDLINE_BIN);
const read = (...path) => readFileSync(join(deploy, ...path), "utf8");
const has = (tool) => spawnSync("sh", ["-c", `command -v ${tool}`]).status === 0;
const seconds = (text) => Number(text.match(/--shutdown-timeout=(\d+)/)?.[1] ?? 30);

/** Returns the resources that a kustomization combines, before its patches. */
function resources(folder) {
    const list = parse(read(folder, "kustomization.yaml")).resources;
    const others = readdirSync(join(deploy, folder)).filter((name) => name.endsWith(".yaml") && name !== "kustomization.yaml");
    assert.deepEqual(others.filter((name) => !list.includes(name)), [], `${folder}: files that the kustomization leaves out`);
    return list.flatMap((name) => name.endsWith(".yaml")
        ? parseAllDocuments(read(folder, name), {merge: true}).map((one) => one.toJS())
        : resources(join(folder, name)));
}

const packageOf = (apiVersion) => `${apiVersion.startsWith("keda.sh/") ? "@kubernetes-models/keda" : "kubernetes-models"}/${apiVersion}`;

/** Returns the compiler's errors for resources as values of the API's types: unknown, missing and wrongly typed fields. */
function complaints(all) {
    const file = resolve("resources.ts");
    writeFileSync(file, all.map((one, i) => `import type {I${one.kind} as T${i}} from "${packageOf(one.apiVersion)}";\n` +
        `export const r${i}: T${i} = ${JSON.stringify(one)};\n`).join(""));
    const compiled = ts.createProgram([file], {noEmit: true, strict: true, skipLibCheck: true, types: [],
        module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler});
    return ts.getPreEmitDiagnostics(compiled).map((one) => ts.flattenDiagnosticMessageText(one.messageText, "\n"));
}

const base = resources("kubernetes/base");
const byKind = (...kinds) => base.filter((one) => kinds.includes(one.kind));
const workloads = byKind("Deployment", "StatefulSet");

test("Kubernetes' resources have the API's types and pass its schemas", async () => {
    const all = [...resources("kubernetes/hpa"), ...resources("kubernetes/keda")];
    assert.deepEqual(complaints(all), []);
    for (const one of all) {
        const models = await import(packageOf(one.apiVersion));
        new models[one.kind](one).validate();
    }
});

test("a field that the Kubernetes API does not know is found", () => {
    const wrong = structuredClone(workloads[0]);
    wrong.spec.template.spec.containers[0].readynessProbe = {};
    assert.match(complaints([wrong]).join(), /readynessProbe/);
});

// Debian 12's kubectl has a kustomize that is too old to report its version.
const hasKustomize = has("kubectl") &&
    spawnSync("kubectl", ["version", "--client", "-o", "json"], {encoding: "utf8"}).stdout.includes("kustomizeVersion");
test("kustomize builds the pool with either autoscaler", {skip: !hasKustomize && "no kubectl"}, () => {
    for (const folder of ["base", "hpa", "keda"]) {
        const built = execFileSync("kubectl", ["kustomize", join(deploy, "kubernetes", folder)], {encoding: "utf8"});
        assert.equal(parseAllDocuments(built).length, resources(`kubernetes/${folder}`).length);
    }
});

test("services, budgets and policies select pods that there are", () => {
    const labels = workloads.map((one) => one.spec.template.metadata.labels);
    const selectors = [...byKind("Service").map((one) => one.spec.selector),
        ...byKind("PodDisruptionBudget").map((one) => one.spec.selector.matchLabels),
        ...byKind("NetworkPolicy").map((one) => one.spec.podSelector.matchLabels)];
    for (const selector of selectors) {
        assert.equal(labels.filter((one) => Object.entries(selector).every(([key, value]) => one[key] === value)).length, 1);
    }
    assert.equal(byKind("PodDisruptionBudget").length, workloads.length);
});

test("pods are no root, write nowhere but into their volumes, and get the time that their shutdown takes", () => {
    for (const one of workloads) {
        const pod = one.spec.template.spec;
        assert.ok(pod.securityContext.runAsNonRoot && pod.securityContext.seccompProfile.type === "RuntimeDefault");
        for (const container of [...(pod.initContainers ?? []), ...pod.containers]) {
            assert.deepEqual(container.securityContext,
                {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: ["ALL"]}});
            assert.ok(container.resources.requests.cpu && container.resources.limits.memory);
            for (const mount of container.volumeMounts) assert.ok(pod.volumes.some((volume) => volume.name === mount.name), mount.name);
        }
        const [main] = pod.containers;
        const before = Number(main.lifecycle?.preStop.exec.command[1] ?? 0);
        if (main.args[0] !== "broker") assert.ok(pod.terminationGracePeriodSeconds > before + seconds(main.args.join(" ")), main.name);
    }
});

test("the program has every option that is used", () => {
    const used = workloads.map((one) => one.spec.template.spec.containers[0].args.join(" "));
    for (const name of readdirSync(join(deploy, "systemd"))) used.push(...read("systemd", name).match(/(?<=redline )(broker|gateway|worker|serve).*/g) ?? []);
    for (const name of readdirSync(join(deploy, "slurm"))) {
        const script = read("slurm", name).replaceAll("\\\n", " ");
        used.push(...script.match(/(?<=(\$redline|:-redline\})" )(broker|gateway|worker) .*/g));
    }
    assert.ok(used.length >= 10, used.join("\n"));
    const common = execFileSync(program, ["--help"], {encoding: "utf8"});
    for (const line of used) {
        const help = execFileSync(program, [line.match(/^\w+/)[0], "--help"], {encoding: "utf8"}) + common;
        for (const [option] of line.matchAll(/--[a-z-]+/g)) assert.match(help, new RegExp(`${option}\\b`), line);
        for (const [, variable] of line.matchAll(/(REDLINE_[A-Z_]+)=/g)) assert.match(help, new RegExp(`${variable}\\b`), line);
    }
});

test("systemd takes the units and finds little that they could do", {skip: !has("systemd-analyze") && "no systemd-analyze"}, () => {
    const folder = mkdtempSync(join(tmpdir(), "redline-units-"));
    try {
        for (const name of readdirSync(join(deploy, "systemd")).filter((one) => one.endsWith(".service"))) {
            const unit = read("systemd", name);
            const [, command] = unit.match(/^ExecStart=(\S+)/m);
            assert.equal(command, "/usr/local/bin/redline");
            const file = join(folder, name.replace("@", "@one"));
            writeFileSync(file, unit.replaceAll(command, program));
            const verified = spawnSync("systemd-analyze", ["verify", file], {encoding: "utf8"});
            assert.equal(verified.status, 0, verified.stderr);
            assert.ok(!verified.stderr.includes(name), verified.stderr);
            const exposed = spawnSync("systemd-analyze", ["security", "--offline=yes", "--threshold=20", file], {encoding: "utf8"});
            assert.equal(exposed.status, 0, exposed.stdout + exposed.stderr);
            // The file, in which docs/team.md sets the model, must override the environment.
            assert.doesNotMatch(unit, /^Environment=.*REDLINE_(MODEL|DRAFT)=/m, `${name} has a model of its own`);
            const takesKeys = /redline (.* )?(serve|gateway) /.test(unit);
            assert.equal(/^ExecReload=.*-HUP \$MAINPID$/m.test(unit), takesKeys, `${name}: keys are read anew by reload`);
            const [, stop] = unit.match(/^TimeoutStopSec=(\d+)/m) ?? [];
            if (stop) assert.ok(Number(stop) > 30, `${name}: expected more than --shutdown-timeout`);
        }
    } finally {
        rmSync(folder, {recursive: true});
    }
});

test("the image has the libraries that the program is linked with", {skip: !(has("dpkg") && has("readelf")) && "not Debian"}, () => {
    const installed = read("Dockerfile");
    const paths = new Map([...execFileSync("ldd", [program], {encoding: "utf8"}).matchAll(/(\S+) => (\S+)/g)].map(([, name, path]) => [name, path]));
    for (const [, name] of execFileSync("readelf", ["-d", program], {encoding: "utf8"}).matchAll(/NEEDED.*\[(.*)\]/g)) {
        if (!paths.has(name) || /^lib(c|m|stdc\+\+|gcc_s|asan|ubsan|tsan)\.so/.test(name)) continue;  // in every image, or a sanitizer's
        const real = execFileSync("readlink", ["-f", paths.get(name)], {encoding: "utf8"}).trim();
        // With a merged /usr, packages list some files by their old paths.
        const owner = [real, real.replace(/^\/usr/, "")].map((path) => spawnSync("dpkg", ["-S", path], {encoding: "utf8"}))
            .find((run) => run.status === 0)?.stdout.split(":")[0];
        assert.ok(installed.includes(owner), `expected the package ${owner} of ${name} in deploy/Dockerfile`);
    }
});
