"""Training a policy: supervised on variants that passed, then by contrastive reinforcement learning."""

import os

# Threads of torch that wait for each other in a busy loop slow training down several times as soon as anything else
# wants a core. OpenMP reads this once, when torch is first imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
