# problem: plans
# loses: plans-choice
# reason: message of choose's RuntimeError does not tell what to do(.|\n)*got       'no plan can be chosen'\n


def choose(plans, limit):
    """Return the id of the fastest usable plan within `limit` bytes; raise RuntimeError if there is none."""
    usable = [plan for plan in plans if plan["status"] == "ok" and plan["workspace_bytes"] <= limit]
    if not usable:
        raise RuntimeError("no plan can be chosen")
    return min(usable, key=lambda plan: (plan["seconds"], plan["workspace_bytes"], plan["id"]))["id"]


def least_workspace(plans, slowdown):
    """Return the fewest bytes under which the choice takes at most `slowdown` times as long as without a limit."""
    usable = [plan for plan in plans if plan["status"] == "ok"]
    enough = slowdown * min(plan["seconds"] for plan in usable)
    return min(plan["workspace_bytes"] for plan in usable if plan["seconds"] <= enough)
