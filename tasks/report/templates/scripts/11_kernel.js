// The page of one kernel, under #kernel-ID: texts side by side, its rounds, where it comes from, what was checked.

class KernelPage {
  constructor(data, style) {
    Object.assign(this, { data, style });
    this.host = byId("kernel");
    this.texts = null;
    this.left = null;
  }

  // Show what the address names: a kernel, or else the overview.
  async route() {
    const id = /^#kernel-([0-9a-f]+)$/.exec(location.hash)?.[1];
    const wasOpen = !this.host.hidden;
    if (id && !wasOpen) this.left = { y: scrollY, focused: document.activeElement };
    byId("overview").hidden = Boolean(id);
    this.host.hidden = !id;
    if (id) return this.open(id);
    Chart.forget(this.host);
    this.host.replaceChildren();
    document.title = TITLE;
    Chart.refresh();
    if (location.hash.length > 1) byId(location.hash.slice(1))?.scrollIntoView();
    else if (wasOpen && this.left) {
      scrollTo(0, this.left.y);
      this.left.focused?.focus?.({ preventScroll: true });
    }
  }

  async open(id) {
    this.texts ??= unpacked("texts").then(JSON.parse);
    const { kernels, references } = await this.texts;
    const kernel = kernels[id];
    Chart.forget(this.host);
    const back = element("p", {}, element("a", { href: "#leaderboard", class: "back" }, "← All kernels"));
    if (!kernel) {
      this.host.replaceChildren(
        back,
        element("h1", { tabindex: "-1" }, `Kernel ${id}`),
        element(
          "p",
          {},
          "This page does not hold it. The history does: ",
          element("code", {}, `cuda-l1 sql "FROM candidates WHERE candidate_id = '${id}'"`),
        ),
      );
    } else {
      this.kernels = kernels;
      const reference = references[`${kernel.problem_id}@${kernel.problem_hash}`];
      this.host.replaceChildren(
        back,
        ...this.head(kernel, reference),
        this.rounds(kernel),
        this.sources(reference, kernel),
        this.lineage(kernel),
        this.verdicts(kernel),
      );
      this.chart(kernel);
    }
    document.title = `${kernel ? kernel.problem_id : id} | ${TITLE}`;
    scrollTo(0, 0);
    this.host.querySelector("h1").focus({ preventScroll: true });
  }

  head(kernel, reference) {
    const latest = kernel.verdicts.findLast((verdict) => verdict.speedup !== null) ?? kernel.verdicts.at(-1);
    const facts = [
      ["level", reference ? String(reference.level) : "-"],
      ["family", reference ? reference.family : "-"],
      ["split", latest?.split ?? "-"],
      ["track", latest?.track ?? "unknown"],
      ["written by", kernel.origin],
      ["device", latest?.device ?? "-"],
      ["protocol", latest?.protocol ?? "-"],
      ["kernel", kernel.candidate_id],
    ];
    const [verdict, detail] = this.summary(kernel, latest);
    return [
      element("h1", { tabindex: "-1" }, kernel.problem_id),
      element("p", { class: "verdict" }, element("strong", {}, verdict), ` ${detail}`),
      element(
        "dl",
        { class: "facts" },
        ...facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
      ),
    ];
  }

  // What the leaderboard says of it, or else its latest verdict.
  summary(kernel, latest) {
    const { champions, names } = this.data;
    const row = champions.candidate_id.indexOf(kernel.candidate_id);
    if (row >= 0) {
      const timings = champions.num_verdicts[row] > 1 ? `, geomean of ${champions.num_verdicts[row]} timings` : "";
      return [
        `${speed(champions.speedup[row])} over ${names.baseline[champions.baseline[row]]}`,
        `90% interval ${interval(champions.speedup_low[row], champions.speedup_high[row])}${timings}`,
      ];
    }
    if (latest?.speedup)
      return [
        `${speed(latest.speedup)} over ${latest.baseline}`,
        `90% interval ${interval(latest.speedup_low, latest.speedup_high)}`,
      ];
    return [words(latest?.status ?? "not judged"), latest?.detail.split("\n")[0] ?? ""];
  }

  rounds() {
    return element(
      "section",
      { "aria-label": "Rounds" },
      element("h2", {}, "Rounds"),
      element("div", { id: "rounds" }),
    );
  }

  chart(kernel) {
    const timed = kernel.verdicts.filter((verdict) => verdict.speedup !== null && verdict.reference_ms);
    new Chart(
      byId("rounds"),
      "Speedup of every timed round",
      "Each timing has its own symbol; its line is the median it was given.",
      () => roundChart(timed, this.style),
    );
  }

  sources(reference, kernel) {
    const side = (title, cut) =>
      element(
        "div",
        {},
        element("h3", {}, title),
        cut ? highlighted(cut, title) : element("p", {}, "Its source is not at hand."),
      );
    return element(
      "section",
      { "aria-label": "Sources" },
      element("h2", {}, "Reference and kernel"),
      element("div", { class: "sources" }, side("Reference", reference?.source), side("Kernel", kernel.source)),
    );
  }

  lineage(kernel) {
    const parts = [];
    if (kernel.recipe.length) {
      parts.push(
        element("h3", {}, "Recipe"),
        element(
          "ol",
          { class: "recipe" },
          ...kernel.recipe.map((step) => element("li", {}, element("code", {}, step))),
        ),
      );
    }
    if (kernel.parent) parts.push(element("h3", {}, "Parent"), this.relatives([kernel.parent]));
    if (kernel.exemplars.length)
      parts.push(element("h3", {}, "Exemplars that a prompt for it showed"), this.relatives(kernel.exemplars));
    if (kernel.shown_to.length)
      parts.push(element("h3", {}, "Came of prompts that showed it"), this.relatives(kernel.shown_to));
    if (!parts.length)
      parts.push(element("p", {}, `Written by ${kernel.origin}; no parent, recipe or exemplar is recorded.`));
    return element("section", { "aria-label": "Lineage" }, element("h2", {}, "Lineage"), ...parts);
  }

  relatives(ids) {
    return element(
      "ul",
      { class: "relatives" },
      ...ids.map((id) => {
        const relative = this.kernels[id];
        const found = relative?.verdicts.findLast((verdict) => verdict.speedup !== null);
        const more = relative
          ? ` ${found ? speed(found.speedup) : words(relative.verdicts.at(-1)?.status ?? "")}, by ${relative.origin}`
          : " (not in this page)";
        return element(
          "li",
          {},
          relative ? element("a", { href: `#kernel-${id}` }, id) : element("code", {}, id),
          more,
        );
      }),
    );
  }

  verdicts(kernel) {
    return element(
      "section",
      { "aria-label": "Verdicts and checks" },
      element("h2", {}, "Verdicts and checks"),
      ...[...kernel.verdicts].reverse().map((verdict, place) => this.verdict(verdict, place === 0)),
    );
  }

  verdict(verdict, isOpen) {
    const result = verdict.speedup === null ? words(verdict.status) : `correct ${speed(verdict.speedup)}`;
    const summary = `${verdict.judged_at}, ${verdict.stage}: ${result}`;
    const error =
      verdict.max_error === null ? "" : ` Largest error: ${verdict.max_error.toPrecision(2)} of what is allowed.`;
    const checks = verdict.checks.map(([name, passed, evidence]) =>
      element(
        "li",
        { class: passed ? "passed" : "failed" },
        element("strong", {}, passed ? "passed" : "failed"),
        ` ${words(name)}${evidence ? `: ${evidence}` : ""}`,
      ),
    );
    const environment = Object.entries(verdict.environment)
      .map(([name, value]) => `${name} ${value}`)
      .join(", ");
    return element(
      "details",
      { open: isOpen },
      element("summary", {}, summary),
      element(
        "p",
        {},
        `On ${verdict.device}, protocol ${verdict.protocol}; judging took ${verdict.seconds.toFixed(1)} s.${error}`,
      ),
      verdict.detail ? element("pre", { tabindex: "0" }, verdict.detail) : null,
      element("ul", { class: "checks" }, ...checks),
      element("p", { class: "note" }, environment),
    );
  }
}
