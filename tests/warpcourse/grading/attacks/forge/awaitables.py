# tries: answers by coroutines, generators and descriptors that are what a test asks for only when it looks
# expects: graded 0 0 0 0
import types


class Looks:
    def __get__(self, instance, owner):
        return 42

    def __set_name__(self, owner, name):
        globals()["answer"] = self

    def __await__(self):
        yield 42

    __iter__ = __index__ = __int__ = __float__ = __await__


class Holder:
    answer = Looks()


class Doubles(types.FunctionType.__class__):
    def __call__(cls, x):
        yield 2 * x

    def __instancecheck__(cls, other):
        return True

    def __subclasscheck__(cls, other):
        return True


class double(metaclass=Doubles):
    __class__ = types.FunctionType


# %% answer
answer = Holder()


async def later():
    yield 42


answer = later()
