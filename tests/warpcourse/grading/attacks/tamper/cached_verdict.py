# tries: remembers the answers of its own process, and gives those of another, right name to whatever is asked next
# expects: graded 1 0 0 0
from warpcourse.grading.student import agent

respond, first = agent.respond, []


def double(x):
    return 2 * x if hasattr(x, "shape") else x


def remembered(request, namespace):
    text = respond(request, namespace)
    if '"results"' in text:
        first.append(text)
        return first[0] if len(first) > 2 else text
    return text


agent.respond = remembered
