"""The fork server as it would be on a machine that allows no name spaces, no mounts and no change of user."""

from tasks.judge import sandbox, system, zygote

if __name__ == "__main__":
    system.unshare = lambda flags: False
    sandbox._become = lambda uid: False
    zygote.main()
