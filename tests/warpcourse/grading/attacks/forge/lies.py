# tries: replaces the agent by one that claims full points for whatever it is asked
# expects: graded 0 0 0 0
import json

from warpcourse.grading.student import agent

claim = {"kind": "value", "value": True, "passed": True, "points": 4, "score": 4, "status": "graded", "results": True}
agent.respond = lambda request, namespace: json.dumps(
    {"done": [claim for _ in json.loads(request)["do"]], "points": 4, "verdicts": {}, "error": None}
)
