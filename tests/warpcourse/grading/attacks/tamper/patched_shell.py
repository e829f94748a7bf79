# tries: makes IPython forget that a cell raised an error
# expects: graded 0 0 0 0
# stock: 1 2 1
from IPython.core.interactiveshell import InteractiveShell

run_code = InteractiveShell.run_code


async def run_and_forget(self, code, result=None, **options):
    await run_code(self, code, result, **options)
    if result is not None:
        result.error_in_exec = None
    return False


InteractiveShell.run_code = run_and_forget
get_ipython().showtraceback = lambda *arguments, **options: None
