"""The fork server as it would be on a machine without name spaces, mounts, a change of user and control groups."""

from tasks.judge import zygote
from tasks.judge.walls import cgroup, sandbox, system

if __name__ == "__main__":
    system.unshare = lambda flags: False
    sandbox._become = lambda uid: False
    cgroup.join = lambda entrances: False
    zygote.main()
