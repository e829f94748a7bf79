# tries: answers with malformed data: objects, pickles, shapes that lie, endless numbers, bottomless lists
# expects: graded 0 0 0 0
import base64
import itertools
import json
import pickle

from warpcourse.grading.student import agent


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit",))


data = base64.b64encode(pickle.dumps(Bomb())).decode()
values = itertools.cycle(
    [
        ["a", "|O", [1], "C", data],
        ["a", "<f8", [1 << 40, 1 << 40], "C", ""],
        ["a", "<f8", [-1], "C", data],
        ["i", "9" * 1_000_000],
        ["f", "1e999999999"],
        ["p", data],
        ["__class__"],
        json.loads("[" * 500 + "]" * 500),
        ["g", "cuda", ["a", "<f8", [5], "C", data]],
        {"__reduce__": data},
    ]
)


def respond(request, namespace):
    done = []
    for wish in json.loads(request)["do"]:
        value = {"kind": "value", "value": next(values)}
        done.append({"kind": "results", "results": [value for _ in wish["calls"]]} if wish["op"] == "call" else value)
        if wish["op"] == "describe" and wish["name"] == "double":
            done[-1] = {"kind": "function", "name": "double", "plain": True, "blank": False}
    return json.dumps({"done": done})


agent.respond = respond
