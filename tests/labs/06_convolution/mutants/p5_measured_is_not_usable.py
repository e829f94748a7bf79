# problem: plans
# loses: plans-choice
# reason: choose returns the wrong value(.|\n)*expected  8\n *got       1\n


def choose(plans, limit):
    """Return the id of the fastest usable plan within `limit` bytes; raise RuntimeError if there is none."""
    usable = [plan for plan in plans if plan["seconds"] is not None and plan["workspace_bytes"] <= limit]
    if not usable:
        raise RuntimeError(f"no plan fits into {limit} bytes: allow more workspace")
    return min(usable, key=lambda plan: (plan["seconds"], plan["workspace_bytes"], plan["id"]))["id"]


def least_workspace(plans, slowdown):
    """Return the fewest bytes under which the choice takes at most `slowdown` times as long as without a limit."""
    usable = [plan for plan in plans if plan["status"] == "ok"]
    enough = slowdown * min(plan["seconds"] for plan in usable)
    return min(plan["workspace_bytes"] for plan in usable if plan["seconds"] <= enough)
