"""Who judges: a judge of this machine, or panels of judges on the devices of many."""
