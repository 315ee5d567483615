"""What the automation starts when a challenger is significantly worse: a run that is red until somebody has looked."""

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.states import Failed, State


@flow(name="policy_regressed", persist_result=False)
def policy_regressed(reason: str = "started by hand") -> State:
    """End as failed, so that the dashboard shows it; the champion was kept.

    Args:
        reason: what the comparison found, in words.
    """
    create_markdown_artifact(
        f"# The new policy is worse than the champion\n\n{reason}\n\nThe champion was kept. Look at what has changed "
        f"since it was promoted: `git diff` with its tag, and the retraining's page.\n",
        key="policy-regressed",
        description="a challenger was significantly worse",
    )
    return Failed(message=reason)
