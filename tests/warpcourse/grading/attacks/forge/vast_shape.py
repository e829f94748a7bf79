# tries: answers with an empty array of a shape that no array can have
# expects: graded 0 0 0 0
import json

from warpcourse.grading.student import agent

value = ["a", "<f8", [0, 2**47, 2**47], "C", ""]
claims = ({"kind": "value", "value": value}, {"kind": "results", "results": [{"kind": "value", "value": value}] * 50})
agent.respond = lambda request, namespace: json.dumps(
    {"done": [claims[wish["op"] == "call"] for wish in json.loads(request)["do"]]}
)
