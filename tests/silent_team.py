"""One of two processes, as on two machines, that lose each other in a few seconds; says "met" when they have met.

python -m tests.silent_team 0 HOST:PORT FOLDER
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

from flows.parts import heartbeats
from tasks.params import EngineParams, load_params
from tasks.training.team import team

SECONDS = 600


def meet(seconds: int) -> None:
    """Talk to each other all the time, in the group without a time limit worth the name."""
    for round_number in range(seconds * 10):
        team().gathered(round_number)
        if round_number == 1:
            sys.stderr.write("met\n")
        time.sleep(0.1)


def main() -> None:
    number, address, folder = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    heartbeats.BEAT_S, heartbeats.LOST_S = 0.2, 4.0
    from flows.following import _follow
    from flows.parts import launching

    launching.NOTICE_S = 2.0
    engine = EngineParams(processes=1, nodes=2, address=address)
    if number:
        _follow(engine, number=number, address=address)
        return
    with launching.trainers(replace(load_params(), engine=engine), folder=folder) as crew:
        crew.train(meet, SECONDS)


if __name__ == "__main__":
    main()
