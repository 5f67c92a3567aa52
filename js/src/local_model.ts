/**
 * Stands in for the kernel's model in a page without one, and passes the linked traits on to a kernel's
 * when there is one: an undisplayed anywidget (link.ts) registers itself under the report's id.
 */

import type { Answered, Model } from "./types";

/** The traits that a report and Python share while a kernel runs. */
export const LINKED = ["tab", "range_ms", "selection", "highlight", "host"] as const;

interface Links {
  models: Map<string, Model>;
  /** Reports that wait for, or already use, the link of their id. */
  reports: Set<{ id: string; attach(model: Model): void; detach(model: Model): void }>;
}

declare global {
  var __tfprof_links: Links | undefined;
}

function links(): Links {
  return (globalThis.__tfprof_links ??= { models: new Map(), reports: new Set() });
}

/** Called by the undisplayed widget; returns how to take the link away again. */
export function registerLink(id: string, model: Model): () => void {
  const { models, reports } = links();
  const former = models.get(id);
  models.set(id, model);
  for (const report of reports) {
    if (report.id !== id) continue;
    if (former !== undefined) report.detach(former);
    report.attach(model);
  }
  return () => {
    if (models.get(id) !== model) return;
    models.delete(id);
    for (const report of reports) if (report.id === id) report.detach(model);
  };
}

export class LocalModel implements Model {
  private readonly values: Record<string, any>;
  private readonly listeners = new Map<string, Set<(...args: any[]) => void>>();
  /** What was set here since the last `save_changes`, and what the reader of the page has ever set. */
  private readonly unsaved = new Set<string>();
  private readonly touched = new Set<string>();
  private remote: Model | null = null;
  private readonly following: (() => void)[] = [];
  /** Questions that Python has not answered yet. */
  private readonly asked = new Map<number, { answer(answered: Answered): void; fail(error: Error): void }>();
  private questions = 0;

  constructor(values: Record<string, any>) {
    this.values = values;
  }

  get(name: string): any {
    return this.values[name];
  }

  set(name: string, value: unknown): void {
    this.unsaved.add(name);
    this.touched.add(name);
    this.change(name, value);
  }

  save_changes(): void {
    if (this.remote !== null) {
      for (const name of LINKED) if (this.unsaved.has(name)) this.remote.set(name, this.values[name]);
      this.remote.save_changes();
    }
    this.unsaved.clear();
  }

  on(event: string, callback: (...args: any[]) => void): void {
    const listeners = this.listeners.get(event);
    if (listeners === undefined) this.listeners.set(event, new Set([callback]));
    else listeners.add(callback);
  }

  off(event: string, callback?: ((...args: any[]) => void) | null): void {
    if (callback) this.listeners.get(event)?.delete(callback);
    else this.listeners.delete(event);
  }

  get linked(): boolean {
    return this.remote?.send !== undefined;
  }

  /** Asks Python; fails if it is not there, goes away before it answers, or answers that it can't. While it is busy, this takes as long. */
  ask(question: Record<string, unknown>): Promise<Answered> {
    const { remote } = this;
    return new Promise((answer, fail) => {
      if (remote?.send === undefined) return fail(new Error("No kernel is linked to this report."));
      const number = ++this.questions;
      this.asked.set(number, { answer, fail });
      try {
        remote.send({ ...question, question: number });
      } catch (error) {
        // Its kernel was shut down: nothing else tells.
        this.detach(remote);
        fail(error instanceof Error ? error : new Error(String(error)));
      }
    });
  }

  private hear(content: Record<string, any>, buffers: ArrayBufferView[]): void {
    const waiting = this.asked.get(content?.["question"]);
    if (waiting === undefined) return;
    this.asked.delete(content["question"]);
    if (typeof content["error"] === "string") return waiting.fail(new Error(content["error"]));
    const names = (content["tables"] ?? []) as string[];
    waiting.answer({ content, tables: Object.fromEntries(names.map((name, i) => [name, buffers[i]!])) });
  }

  /** Looks for the link with this id now and whenever one is registered. */
  link(id: string, signal: AbortSignal): void {
    const { models, reports } = links();
    const report = {
      id,
      attach: (model: Model) => this.attach(model),
      detach: (model: Model) => this.detach(model),
    };
    reports.add(report);
    const model = models.get(id);
    if (model !== undefined) this.attach(model);
    signal.addEventListener("abort", () => {
      reports.delete(report);
      if (this.remote !== null) this.detach(this.remote);
    });
  }

  private attach(model: Model): void {
    this.remote = model;
    for (const name of LINKED) {
      const follow = () => this.change(name, model.get(name));
      model.on(`change:${name}`, follow);
      this.following.push(() => model.off(`change:${name}`, follow));
      // What the reader has set stands; else the kernel's value does.
      if (this.touched.has(name)) model.set(name, this.values[name]);
      else follow();
    }
    const hear = (content: Record<string, any>, buffers: ArrayBufferView[]) => this.hear(content, buffers);
    model.on("msg:custom", hear);
    this.following.push(() => model.off("msg:custom", hear));
    model.save_changes();
    this.tell("change:linked");
  }

  private detach(model: Model): void {
    if (this.remote !== model) return;
    this.remote = null;
    for (const stop of this.following.splice(0)) stop();
    for (const { fail } of this.asked.values()) fail(new Error("The kernel is gone."));
    this.asked.clear();
    this.tell("change:linked");
  }

  private change(name: string, value: unknown): void {
    // Values are JSON; without this an echo from the kernel would go round for ever.
    if (JSON.stringify(this.values[name]) === JSON.stringify(value)) return;
    this.values[name] = value;
    for (const event of [`change:${name}`, "change"]) this.tell(event);
  }

  private tell(event: string): void {
    for (const callback of [...(this.listeners.get(event) ?? [])]) callback();
  }
}
