# tries: raises what the judge itself raises and catches, under its names, from every function
# expects: graded 0 0 0 0
names = ("OutOfTime", "CheckFailed", "SimulatorFailure", "NoAnswer", "StopIteration", "GeneratorExit", "SkipTest")
names = (*names, "KeyboardInterrupt", "SystemExit", "AssertionError", "NameError", "MemoryError", "ExceptionGroup")
calls = []


def double(x):
    calls.append(x)
    name = names[len(calls) % len(names)]
    raise type(name, (ArithmeticError,), {"kind": "", "passed": True, "name": "x", "__str__": lambda self: "4.0"})


# %% own
raise type("CheckFailed", (BaseException,), {})("4.0")
