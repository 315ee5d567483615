"""The report on one optimization, as markdown: what was tried, what won and why, and what is claimed of it."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from tasks.judge.verdict import UNEVEN_CALLS, Speedup, Status, Verdict
from tasks.search.contributions import Contribution, proposed_as
from tasks.search.drop_in import judged_mode
from tasks.search.found import Scored, over, ranked, surely_beaten
from tasks.search.search import SCREEN
from tasks.search.survey import Survey
from tasks.search.user_file import UserFile
from tasks.search.writers import Asked
from tasks.variants.builtin import COMPILED
from tasks.variants.candidate import Candidate
from tasks.variants.rewrites import CUDA_REWRITES, REWRITES
from tasks.variants.rewrites.cuda_graph import CAPTURE
from tasks.variants.rewrites.dispatch import DISPATCH
from tasks.variants.rewriting import ORIGIN as BY_REWRITES
from tasks.variants.shortening import shortened

MOST_TRIED = 40
DETAIL_CHARS = 160
"""Of a reason within a table or a sentence."""
REASON_CHARS = 400
"""Of one on a line of its own, which may have such a detail in it."""
COMPUTES_THE_SAME = frozenset(
    each.name for each in (*REWRITES, *CUDA_REWRITES) if each.group in (COMPILED, CAPTURE, DISPATCH)
)
"""Rewrites that leave what the forward computes as it stands."""
GRADIENTS_IN_WORDS = {
    Status.CORRECT: "The judge compared the gradients of every input and weight: equal.",
    Status.UNSTABLE: "The judge compared the gradients of every input and weight: equal.",
    Status.BAD_PROBLEM: "They were not compared: the reference has none that can be compared.",
    Status.TIMEOUT: "They were not compared: that took too long.",
}


def in_words(speedup: Speedup) -> str:
    """A speedup with its interval.

    >>> in_words(Speedup(median=1.5, low=1.25, high=1.75))
    '1.50x (1.25 to 1.75)'
    """
    return f"{speedup.median:.2f}x ({speedup.low:.2f} to {speedup.high:.2f})"


def charges(verdict: Verdict) -> list[str]:
    """What the judge multiplied the times for: calls that seem to do the work of others."""
    return [check.evidence for check in verdict.checks if check.name == UNEVEN_CALLS]


def found_in_words(verdict: Verdict) -> str:
    """The speedup, with what it was charged for, or why there is none."""
    if verdict.timing is None:
        return f"{verdict.status}: {one_line(verdict.detail)}"
    charged = "; ".join(charges(verdict))
    return f"{in_words(verdict.timing.speedup)}{charged and f', charged for uneven calls: {charged}'}"


def written_by(candidate: Candidate) -> str:
    """Who made it, in a few words: the rewrites it comes from, or its author."""
    return ", ".join(candidate.recipe) or candidate.origin


def counts_in_words(scored: Sequence[Scored]) -> str:
    """How many judgements refused a text, and how many timings did not settle: those texts are not wrong."""
    unsettled = sum(each.verdict.status is Status.UNSTABLE for each in scored)
    refused = sum(not each.verdict.is_correct for each in scored) - unsettled
    return f"{refused} refused{f', {unsettled} not settled' if unsettled else ''}"


def render(
    file: UserFile,
    *,
    winner: Scored | None,
    claimed: Speedup | None,
    baseline: tuple[str, Speedup],
    baselines: Sequence[Scored],
    not_judged: Mapping[str, str],
    scored: Sequence[Scored],
    asked: Sequence[Asked],
    brought: Sequence[Contribution],
    failed: dict[str, str],
    gradients: Verdict | None,
    unsettled: Verdict | None,
    unwritten: str,
    beaten: Speedup | None,
    shapes: str,
    seconds: float,
    interrupted: bool,
    no_drop_in: str,
) -> str:
    """The whole report.

    Args:
        winner: the judgement of the drop-in that was written, if any.
        claimed: its speedup over eager.
        baseline: the best one, with its speedup over eager.
        not_judged: names of the baselines that were not, with the reason.
        scored: every judgement of the search.
        asked: every question to a language model or a policy.
        brought: what each proposer did.
        failed: who could not propose, or what could not be written, with the reason.
        gradients: the verdict on those of the drop-in.
        unsettled: the verdict on the winner's long timing, where that did not settle.
        unwritten: what stood between the candidates and a drop-in that is written, in words, if anything did.
        beaten: speedup of the best drop-in, where it is faster than eager for sure and not than the best baseline.
        shapes: of the inputs that it was judged on, in words.
        no_drop_in: why the file gets none, whatever is found; empty where nothing is known.
    """
    parts = [f"# {file.class_name} of {file.path.name}"]
    if claimed:
        parts += _result(claimed, baseline, not_judged)
    else:
        parts += _no_result(file, baseline, unwritten, no_drop_in)
        parts += _less_to_beat(beaten, surely_beaten(beaten, baselines)) if beaten else []
    if winner is not None:
        parts += [_doubt(winner, unsettled), _proof(winner, _author(winner, scored, asked))]
    parts += [f"The search took {seconds:.0f} s{' and was interrupted' if interrupted else ''}."]
    if winner is not None:
        parts += ["## What the file promises", *_promises(file, gradients, shapes)]
    parts += ["## Baselines", _baselines(baselines, not_judged), "## Who proposed what", _brought(brought)]
    parts += [_unknown_to_rewrites(scored)]
    parts += ["## What was tried", _tried(scored)]
    if failed:
        parts += [
            "## What ended early or could not be used",
            "\n".join(f"- {name}: {shortened(why, REASON_CHARS)}" for name, why in failed.items()),
        ]
    parts += [_conditions(winner or next(iter(scored), None))]
    return "\n\n".join(part for part in parts if part) + "\n"


def _no_result(file: UserFile, baseline: tuple[str, Speedup], unwritten: str, no_drop_in: str) -> list[str]:
    nothing = f"Nothing was found that is faster for sure than the best baseline, {baseline[0]}. Nothing is written"
    lines = [f"**{f'Nothing is written: {unwritten}' if unwritten else nothing}.**"]
    if no_drop_in:
        words = f"No drop-in can be written for {file.class_name}, whatever is found"
        lines.append(f"**{words}; change this to get one: {no_drop_in}.**")
    return lines


def _less_to_beat(speedup: Speedup, slower: Sequence[str]) -> list[str]:
    return [
        f"A drop-in was judged {in_words(speedup)} over eager, and is faster than {' and '.join(slower)} for sure. "
        f"With `--baselines {' '.join(slower)}` the same command goes on from here and compares it with no others."
    ]


def _result(claimed: Speedup, baseline: tuple[str, Speedup], not_judged: Mapping[str, str]) -> list[str]:
    name, best = baseline
    lines = [f"**{in_words(claimed)} over eager.**"]
    if name != "eager":
        lines.append(f"**{in_words(over(claimed, best))} over {name}, the best baseline.**")
    lines += [f"**Not compared with {other}: {reason}. It may be as fast.**" for other, reason in not_judged.items()]
    return lines


def _proof(winner: Scored, author: str) -> str:
    return (
        f"It won by {author}; track: {winner.verdict.track}. The file that is written is what was judged, guards "
        f"included: {len(winner.verdict.checks)} checks passed, largest error {winner.verdict.max_error or 0:.2f} of "
        f"what is allowed. Both were timed with one thread."
    )


def _doubt(winner: Scored, unsettled: Verdict | None) -> str:
    if unsettled is None or winner.interval is None:
        return ""
    return (
        f"**How much faster it is, the long timing did not settle; that it is, every part of it showed: "
        f"{one_line(unsettled.detail)}. The drop-in rung had {in_words(winner.interval)}; the lesser of the two is "
        f"claimed.**"
    )


def _author(winner: Scored | None, scored: Sequence[Scored], asked: Sequence[Asked]) -> str:
    """Who wrote the winner, and from what."""
    made_of = proposed_as(winner, scored) if winner else None
    if made_of is None:
        return "a program written by a provider"
    candidate, speedups = made_of.candidate, {each.candidate.candidate_id: each.speedup for each in reversed(scored)}
    steps = " then ".join(f"`{step}`" for step in candidate.recipe)
    by = f"{steps} of {candidate.origin}" if steps else f"a program of {candidate.origin}"
    for each in asked:
        if each.candidate is not None and each.candidate.candidate_id == candidate.candidate_id:
            shown = [f"{name[:8]} at {speedups[name]:.2f}x" for name in each.exemplar_ids if speedups.get(name)]
            return f"{by}, its answer to question {each.number}, which showed {' and '.join(shown) or 'no exemplars'}"
    return by


def forms_in_words(facts: Survey) -> str:
    """What a call is given, such as "float32 [8, 64]; 'sum'"."""

    def words(form: Any) -> str:
        match form:
            case ("tensor", dtype, shape, _):
                return f"{dtype} {list(shape)}"
            case ("value", value):
                return repr(value)
            case ("type", name):
                return f"any {name}"
            case [("type", str(kind)), *parts] if kind.startswith("tuple"):
                return f"({', '.join(map(words, parts))})"
            case list():
                return f"[{', '.join(map(words, form))}]"
        return str({name: words(each) for name, each in form.items()})

    named = [f"{name}: {words(form)}" for name, form in facts.named_inputs.items()]
    return "; ".join([*map(words, facts.inputs), *named]) or "none"


def _promises(file: UserFile, gradients: Verdict | None, shapes: str) -> list[str]:
    mode = {None: "in either mode", True: "in training mode", False: "in evaluation mode"}[judged_mode(file)]
    compared = GRADIENTS_IN_WORDS[gradients.status] if gradients else "They were not compared in this run."
    return [
        f"- **Where it is fast:** {mode}, with gradients off (`torch.no_grad` or `torch.inference_mode`), without "
        f"autocast, for inputs of these forms: {shapes}, as long as the module is what was judged: made with equal "
        "constructor arguments, its attributes and those of the modules inside as they were then. Everywhere else the "
        "original forward runs, at its own speed.\n"
        "- **Constructor and state dict** are the original's: the class inherits from it and adds no tensor to it.\n"
        f"- **Gradients** are those of the original forward, which runs whenever gradients are on. {compared} How fast "
        "training is was not judged.\n"
        "- **Weights may change** at any time, in place or by loading. Modules inside that are replaced, hooked, put "
        "into another mode, or moved to another dtype or device make the original forward run. So does another value "
        "of an attribute that is plain data or a function; attributes of other kinds are not compared.\n"
        "- **Its speed with more threads** was not judged: the original may gain by them where this does not, so time "
        "it the way you use it.\n"
        "- **Besides its numbers** a call returns the same containers and leaves the same in buffers and in attributes "
        "that methods of the file assign to, unless it says below that this could not be compared.\n"
        "- Not judged: strides of outputs, errors for some values, `torch.jit.script`, several threads in one module. "
        "What the file puts into lists or registries while it is read is of the original class."
    ]


def _baselines(baselines: Sequence[Scored], not_judged: Mapping[str, str]) -> str:
    rows = ["| baseline | over eager |", "|---|---|", "| eager | 1.00x |"]
    for each in baselines:
        rows.append(f"| {each.candidate.origin.partition(':')[2]} | {found_in_words(each.verdict)} |")
    rows += [f"| {name} | not judged: {reason} |" for name, reason in not_judged.items()]
    return "\n".join(rows)


def _brought(brought: Sequence[Contribution]) -> str:
    rows = [
        "| proposer | questions | without answer | without program | texts judged | correct | fastest as screened "
        "| tokens | USD |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for each in brought:
        asked = (each.num_asked, each.num_unanswered, each.num_without_program)
        counts = [str(count) if each.num_asked else "" for count in asked]
        fastest = in_words(each.best.interval) if each.best and each.best.interval else "none"
        cost = [str(each.cost.tokens), f"{each.cost.usd:.4f}"] if each.cost.tokens else ["", ""]
        cells = [each.name, *counts, str(each.num_judged), str(each.num_correct), fastest, *cost]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _unknown_to_rewrites(scored: Sequence[Scored]) -> str:
    """That rewrites were of no use beyond compiling; empty if they were."""
    recipes = [each.candidate.recipe for each in scored if each.candidate.origin == BY_REWRITES and each.rung == SCREEN]
    if not recipes or not COMPUTES_THE_SAME.issuperset(itertools.chain(*recipes)):
        return ""
    return (
        "Rewrites only compiled or captured the forward as it is, or called its layers directly: they know no "
        "other form of what it computes, or time ran out. A language model may find one: see `--provider`."
    )


def _tried(scored: Sequence[Scored]) -> str:
    """The fastest texts, then those whose timing did not settle, then those that were refused, with the reason."""
    others = [each for each in scored if not each.verdict.is_correct]
    others.sort(key=lambda each: each.verdict.status is not Status.UNSTABLE)
    num_texts = len({each.candidate.candidate_id for each in scored})
    counts = f"{_counted(num_texts, 'text')}, {_counted(len(scored), 'judgement')}, {counts_in_words(scored)}."
    rows = ["| text | by | rung | verdict |", "|---|---|---|---|"]
    for each in (ranked(scored) + others)[:MOST_TRIED]:
        cells = [each.candidate.candidate_id[:8], written_by(each.candidate), each.rung, found_in_words(each.verdict)]
        rows.append(f"| {' | '.join(cells)} |")
    return counts + "\n\n" + "\n".join(rows)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _conditions(scored: Scored | None) -> str:
    if scored is None:
        return ""
    verdict = scored.verdict
    versions = ", ".join(f"{name} {value}" for name, value in sorted(verdict.environment.items()))
    return (
        f"Speedups are medians of paired rounds with 90 % intervals, on {verdict.device}, one thread, protocol "
        f"{verdict.protocol}. {versions}."
    )


def one_line(detail: str) -> str:
    """What was raised, or the last line that says something, without what would break a table."""
    lines = [line for line in detail.partition("last output:")[0].splitlines() if line.strip()]
    told = _raised(lines) or lines[-1:]
    return shortened(told[0].strip(), DETAIL_CHARS).replace("|", "\\|") if told else ""


def _raised(lines: Sequence[str]) -> Sequence[str]:
    """From the line on that names the exception of the last traceback; its message may have several."""
    frames = [number for number, line in enumerate(lines) if line.startswith("  File ")]
    after = lines[frames[-1] :] if frames else []
    return [*itertools.dropwhile(lambda line: line[0].isspace(), after)]
