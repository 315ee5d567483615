"""The section retrain: when a policy is retrained, and what makes the new one the champion."""

import re
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field

from tasks.params.fields import Count, Positive, Real, Share, section


def _five_fields(cron: str) -> str:
    if not re.fullmatch(r"\S+( \S+){4}", cron):
        raise ValueError('must be five fields with a space between each, such as "0 3 * * 0" for Sundays at three')
    return cron


def _known(timezone: str) -> str:
    try:
        ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):  # the last of what is a folder of time zones, such as Europe
        raise ValueError('must be a time zone by its IANA name, such as "Europe/Berlin" or "UTC"') from None
    return timezone


@section
class RetrainParams:
    """What a deployment is first made with; from then on its schedule and parameters are edited in the UI."""

    cron: Annotated[str, AfterValidator(_five_fields)] = "0 2 * * *"
    """Minute, hour, day of the month, month, day of the week."""
    timezone: Annotated[str, AfterValidator(_known)] = "UTC"
    """Such as Europe/Berlin; what the hours of cron are hours of."""
    catch_up: bool = True
    """Whether a run that could not begin in time is done late, or skipped until the schedule's next."""
    late_after_s: Positive = 3600.0
    """A run that begins later than this after its time was missed."""
    samples_per_problem: Count = 8
    """Completions of each policy for each problem."""
    temperature: Positive = 0.8
    tier: Literal["screen", "long"] = "long"
    """How each policy's best candidate for a problem is timed: judge.tier and judge.long say what that takes."""
    decided_by: Literal["held_out", "all"] = "held_out"
    """Problems that decide: what no policy was trained on, or all for policies too small to solve any of that."""
    alpha: Annotated[Real, Field(gt=0, lt=0.5)] = 0.05
    """Probability at most with which a challenger that is no better is promoted."""
    min_share_correct: Share = 0.05
    """Of all samples; a first champion must reach it, since there is nobody to compare it with."""

    @property
    def deciding_splits(self) -> tuple[str, ...]:
        """The splits whose problems decide."""
        return ("train", "held_out") if self.decided_by == "all" else ("held_out",)
