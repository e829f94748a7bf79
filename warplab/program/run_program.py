"""Build a program in CUDA C++, run it as a process, and serve its calls of the CUDA runtime."""

import os
import re
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from warplab import simulator
from warplab.compile.architecture import DEFAULT_ARCH
from warplab.hardware import cards
from warplab.launch import resources
from warplab.program.build import CUDA_FILES, HOST_FILES, BuildError, build
from warplab.program.host_code import SourceError
from warplab.program.runtime import Runtime
from warplab.simulator.memory import device_memory

MEMORY_BYTES = 16 << 30
_OPTION = re.compile(r"-(?:[IDUOlLWg]|fopenmp|arch|gencode|rdc=)|--?(?:std|use_fast_math|maxrregcount|ftz|fmad|prec-)")
_NVCC = re.compile(r"-(?:X(?:compiler|ptxas|linker)|ccbin)|--(?:gpu-|generate-|expt-|extended-lambda|relocatable-)")
_NEED_VALUE = ("-I", "-D", "-U", "-l", "-L", "-std", "-arch", "-gencode", "-maxrregcount", "--maxrregcount")
_ARCHITECTURE = re.compile(r"-(?:gencode=.*)?arch=(?:(?:sm|compute)_(?:[2-9]|1[0-2])\d[af]?\b|native$|all(?:-major)?$)")
_OF_ONE_CARD = re.compile(r"=.*?(?:sm|compute)_(\d+a)\b")


def split_command(command: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Return the files, the compilers' options and the program's arguments: `prog.cu more.cu -I. -DN=4 -- 10 20`.

    Without `--` the arguments begin with the first word that is neither a file of a program nor such an option. Raises
    BuildError for an option without its value, one of nvcc alone, and for what is no architecture.
    """
    files: list[str] = []
    options: list[str] = []
    words = list(command)
    while words and words[0] != "--":
        if words[0].endswith((*CUDA_FILES, *HOST_FILES)) and not options:
            files.append(words.pop(0))
        elif _OPTION.match(words[0]):
            word = re.sub("^--std", "-std", words.pop(0))
            if word in _NEED_VALUE:
                if not words or words[0] == "--":
                    raise BuildError(f"{word} needs a value")
                word += "=" * (len(word) > 2) + words.pop(0)
            if word.startswith(("-lineinfo", "-rdc=")):  # lines are always known, and files joined
                continue
            if not word.startswith(("-arch", "-gencode")):
                options.append(word)
            elif not _ARCHITECTURE.match(word):
                raise BuildError(f"{word} names no architecture that is known, such as sm_90")
            elif found := _OF_ONE_CARD.search(word):  # else the simulator's own is compiled for
                options.append(f"--gpu-architecture=compute_{found[1]}")
        elif _NVCC.match(words[0]):
            raise BuildError(f"{words[0]} is nvcc's: leave it out, or write -- before the program's own arguments")
        else:
            return files, options, words
    return files, options, words[1:]


def run_program(files: Sequence[str], options: Sequence[str], arguments: Sequence[str], card: str = "H100") -> int:
    """Build the program, run it, and return its exit code; launches and defects go to the open profiles.

    `card`: the one that the program sees, for which kernels are compiled if it is older than 9.0. Raises BuildError,
    CompileError and SourceError, before anything runs.
    """
    if not any("gpu-architecture" in option for option in options):
        options = [*options, f"--gpu-architecture=compute_{min(resources.architecture(card)[0], DEFAULT_ARCH)}"]
    with tempfile.TemporaryDirectory(prefix="warplab-program-") as folder:
        program = build(files, options, Path(folder))
        memory_file = os.memfd_create("warplab-device")
        try:
            memory = device_memory.DeviceMemory(MEMORY_BYTES, file=memory_file)
            device = simulator.Device(memory=memory)
            ours, theirs = socket.socketpair()
            told = f"{theirs.fileno()} {memory_file} {device_memory.ORIGIN} {memory.size}"
            with ours:
                process = subprocess.Popen(
                    [f"./{Path(files[0]).stem}", *arguments],
                    executable=program.executable,
                    env={**os.environ, "WARPLAB_PROGRAM": told},
                    pass_fds=(theirs.fileno(), memory_file),
                )
                theirs.close()
                device_memory.host_processes.append(str(process.pid))
                try:
                    Runtime(program, device, cards.card(card)).serve(ours)
                except BaseException:
                    process.kill()
                    raise
                finally:
                    device_memory.host_processes.remove(str(process.pid))
            return process.wait()
        finally:
            os.close(memory_file)


__all__ = ["BuildError", "SourceError", "run_program", "split_command"]
