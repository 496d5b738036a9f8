// A place to run the program in: its own home, state folder and repository, and none of the environment around.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";

const LANDFALL = process.env.LANDFALL_BIN ?? "landfall";
const COMMAND_MAX_MS = 120_000;
const ENDS_MAX_MS = 60_000;

/** Where it is served, as `landfall serve --json` says. */
export interface Served {
  addresses: string[];
  links: string[];
}

/** A repository with one commit, settings for the scripted agent, and its own state. */
export class Scratch {
  readonly folder = fs.mkdtempSync(path.join(os.tmpdir(), "landfall-web-"));
  readonly project: string;
  /** Where its pages are. */
  url = "";
  /** Where it listens. */
  at = "";
  private child: ChildProcess | null = null;

  constructor(name: string, settings: string, files: Record<string, string> = {}) {
    this.project = path.join(this.folder, name);
    fs.mkdirSync(path.join(this.folder, "home"));
    fs.mkdirSync(this.project);
    this.git("init", "--quiet", "--initial-branch=main");
    for (const [file, text] of Object.entries({ "README.md": `# ${name}\n`, ...files, "landfall.toml": settings })) this.write(file, text);
    this.git("add", "--all");
    this.git("commit", "--quiet", "--message", "first");
    this.trust();
  }

  /** Trusts the settings as they are, as a person does who has read them. */
  trust() {
    const report = JSON.parse(this.landfall("--json", "trust"));
    if (!report.trusted) this.landfall("trust", "--yes", report.digest);
  }

  write(file: string, text: string) {
    const at = path.join(this.project, file);
    fs.mkdirSync(path.dirname(at), { recursive: true });
    fs.writeFileSync(at, text);
  }

  /** A program that only this project has: in the place of an agent, say. */
  program(name: string, text: string) {
    const bin = path.join(this.folder, "bin");
    fs.mkdirSync(bin, { recursive: true });
    fs.writeFileSync(path.join(bin, name), text, { mode: 0o755 });
  }

  private env(): NodeJS.ProcessEnv {
    return {
      PATH: `${path.join(this.folder, "bin")}:${process.env.PATH}`,
      HOME: path.join(this.folder, "home"),
      LANDFALL_STATE: path.join(this.folder, "state"),
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_AUTHOR_NAME: "Ada Marlow",
      GIT_AUTHOR_EMAIL: "ada@example.invalid",
      GIT_COMMITTER_NAME: "Ada Marlow",
      GIT_COMMITTER_EMAIL: "ada@example.invalid",
      TZ: "UTC",
      LC_ALL: "C.UTF-8",
    };
  }

  git(...args: string[]): string {
    return this.command("git", args);
  }

  /** Runs the program to its end, expects it to succeed, and gives back what it said. */
  landfall(...args: string[]): string {
    return this.command(LANDFALL, args);
  }

  /** The same, whatever it ends with. */
  try(...args: string[]): string {
    try {
      return this.landfall(...args);
    } catch (error) {
      return String(error);
    }
  }

  /** What the program answers as JSON. */
  json(...args: string[]): any {
    return JSON.parse(this.landfall("--json", ...args));
  }

  /** Adds the tasks of a task file. */
  add(tasks: string): string[] {
    const file = path.join(this.folder, "tasks.md");
    fs.writeFileSync(file, tasks);
    return this.json("add", "-f", file).tasks.map((task: { id: string }) => task.id);
  }

  private command(program: string, args: string[]): string {
    return execFileSync(program, args, {
      cwd: this.project,
      env: this.env(),
      encoding: "utf8",
      timeout: COMMAND_MAX_MS,
      stdio: ["ignore", "pipe", "pipe"],
      maxBuffer: 256 * 1024 * 1024,
    });
  }

  /** Starts the server, and gives back a link that lets a browser in. */
  async serve(listen = "127.0.0.1:0"): Promise<string> {
    const child = spawn(LANDFALL, ["serve", "--listen", listen, "--json"], { cwd: this.project, env: this.env(), stdio: ["ignore", "pipe", "pipe"] });
    this.child = child;
    let talk = "";
    child.stderr?.on("data", (part) => (talk += part));
    const served = await new Promise<Served>((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`the server does not say where it is: ${talk}`)), COMMAND_MAX_MS);
      child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${talk}`)));
      let text = "";
      createInterface({ input: child.stdout! }).on("line", (line) => {
        text += line;
        try {
          resolve(JSON.parse(text));
          clearTimeout(late);
        } catch {
          // the rest comes with the next line
        }
      });
    });
    this.url = new URL(served.links[0]!).origin;
    this.at = new URL(served.addresses[0]!).host;
    return served.links[0]!;
  }

  /** Ends the server as Ctrl-C twice would. */
  async end() {
    const child = this.child;
    this.child = null;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const over = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill("SIGINT");
    const again = setTimeout(() => child.kill("SIGINT"), 300);
    const kill = setTimeout(() => child.kill("SIGKILL"), ENDS_MAX_MS);
    await over;
    clearTimeout(again);
    clearTimeout(kill);
  }

  /** Ends everything that is left of it, and removes the folder. */
  async remove() {
    await this.end();
    for (const name of fs.readdirSync("/proc").filter((it) => /^\d+$/.test(it))) {
      const names = (file: string) => {
        try {
          return fs.readFileSync(`/proc/${name}/${file}`, "latin1").includes(this.folder);
        } catch {
          return false; // it has ended, or is somebody else's
        }
      };
      // Agents outlive the engine. They are known by the folder that only this test has.
      if (Number(name) !== process.pid && (names("cmdline") || names("environ"))) {
        try {
          process.kill(Number(name), "SIGKILL");
        } catch {
          // it has ended by itself
        }
      }
    }
    fs.rmSync(this.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

/** The settings of a scratch project. */
export function settings(more: string, check = "true"): string {
  return `[project]\nbase = "main"\n[verify]\nrequired = true\nretries = 0\n[[verify.command]]\nname = "tests"\nrun = ${JSON.stringify(check)}\n[agent.default]\nkind = "script"\n${more}\n`;
}

/** A task of a task file, with what its agent does. */
export function task(head: Record<string, unknown>, script: string, body = ""): string {
  const lines = Object.entries(head).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  return `+++\n${lines.join("\n")}\n+++\n\n${body}\n\n\`\`\`landfall-script\n${script}\n\`\`\`\n\n`;
}
