"""A GPU in NumPy: runs compiled PTX, counts what Nsight Compute counts, catches what compute-sanitizer catches.

The whole machine:

1.  `parser` reads PTX text into the instructions of a `program` (`jumps`: to the label of a number); `calls` puts the
    bodies of device functions in place of their calls; `blocks` cuts the result into basic blocks, in an `ordering` in
    which lanes meet again, and finds the live registers; `places` tells which instructions go to the same memory.
2.  Every thread of a launch is a *lane*. A register is one NumPy array with an entry a lane, or a single entry where
    all lanes hold the same value. `translate` turns a basic block, once, into a Python function on whole arrays, which
    `writer` writes; what each PTX instruction becomes is a row in the tables of `operations`, with `numerics` for what
    NumPy lacks.
3.  `scheduler` keeps, for each basic block, the lanes whose program counter stands there, as `groups`, and runs the
    lowest one (`geometry`: which threads the lanes are).
    Lanes that branch apart become two groups, and merge again where they meet. A function that gets only some lanes
    gathers their registers, runs the same code, and scatters the results. `barriers` and `meetings` hold lanes back
    at block-wide barriers and warp-wide instructions until the others have come; in a `cooperative` launch blocks wait
    for one another, too. `endless` tells what is wrong with a launch that does not end.
4.  `memory` is one address space of allocations with gaps between them; `access` serves loads and stores, and finds
    out what all warps have alike (`patterns`), so that it is looked at once. With checks on, `checks` tests bounds,
    alignment and initialisation before each of them, and `races` looks for accesses of different threads that nothing
    orders (`race_records`: who touched what; `clocks`: what orders with less than a barrier; `lockstep`: `volatile`
    for a `__syncwarp`). `unwritten` finds fragments that were never filled. `errors` has a class for each mistake;
    `elements` names the array and the element. `atomics` lets the lanes come one after another, without a loop over
    them. `asynchronous` and `mbarriers` serve copies that arrive only where a thread waits for them.
5.  `counting` adds up instructions, requests, sectors and branches for each instruction; `counters` names them.
    `machine` estimates what `ptxas` makes of PTX, `merging` which accesses it makes one of. `steps` keeps which lanes
    of the first warps ran which lines when. `sampling` scales the counters of some blocks to a large grid.
6.  `warps` exchanges values between the lanes of a warp; `matrix` multiplies what they hold together, with the layouts
    of `fragments` and the arithmetic of `tensor_cores`.
7.  `system` serves what a kernel asks of the driver: `printf`, assert, clocks, memory of the `heap`.
8.  `device` ties it together: `Device.launch` checks the launch, cuts the grid into chunks of blocks that fit the
    processor's cache, and returns a `LaunchProfile`.

    from warplab import simulator
    program = simulator.load(ptx_text)
    device = simulator.Device()
    a = device.memory.allocate(4096, name="a")
    profile = device.launch(program.entries["kernel"], (4, 1, 1), (256, 1, 1), [a.to_bytes(8, "little")])
"""

from warplab.simulator.count.counters import COUNTERS, Access, Counter, Counts, LaunchProfile
from warplab.simulator.errors import (
    AssertFailed,
    DataRace,
    DivergentBarrier,
    DivergentWarp,
    HostPointer,
    IllegalAddress,
    InstructionLimit,
    InvalidLaunch,
    MisalignedAddress,
    SimulatorError,
    SimulatorFailure,
    UninitializedRead,
    UnsupportedInstruction,
)
from warplab.simulator.memory.device_memory import Allocation
from warplab.simulator.ptx.program import Entry, Param, Program, load
from warplab.simulator.run.device import Device, Options, default_device, using_device

__all__ = [
    "COUNTERS",
    "Access",
    "Allocation",
    "AssertFailed",
    "Counter",
    "Counts",
    "DataRace",
    "Device",
    "DivergentBarrier",
    "DivergentWarp",
    "Entry",
    "HostPointer",
    "IllegalAddress",
    "InstructionLimit",
    "InvalidLaunch",
    "LaunchProfile",
    "MisalignedAddress",
    "Options",
    "Param",
    "Program",
    "SimulatorError",
    "SimulatorFailure",
    "UninitializedRead",
    "UnsupportedInstruction",
    "default_device",
    "load",
    "using_device",
]
