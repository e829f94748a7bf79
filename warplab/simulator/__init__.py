"""A GPU in NumPy: runs compiled PTX, counts as Nsight Compute does, catches mistakes as compute-sanitizer does.

The rooms from the bottom up; each imports only from those above it in this list:

errors      One exception class per kind of mistake. `constants` has the hardware facts that everyone needs.
numerics    Arithmetic that NumPy lacks: `integers`, `bits`, `rounding`, `fma`, `halves`, `conversions`, the approximate
            functions (`special`), `tensor_cores`, and from coordinates to texels (`texture_filtering`).
ptx         `parser` turns PTX text into a `program` of instructions, and `inlining` replaces calls with the bodies of
            device functions, with registers for their parameters; `recursion` gives a call stack to those that call
            themselves (`graphs` finds them). `fragments` says which lane holds which matrix element.
memory      `device_memory` is one address space of allocations with gaps between them, which also serves malloc in
            kernels. `lane_access` gathers and scatters for a group of lanes (`lane_groups`). `address_patterns` finds
            what all warps have in common, `recurring` what loops compute again. `array_locations` names an element in a
            message, `texels` lists textures and surfaces, `tensor_maps` says where the boxes of TMA lie.
translate   `basic_blocks` cuts a kernel into blocks with their live registers, puts them in an order in which diverged
            lanes reconverge, and knows their loops. `translation` turns each block, once, into a Python function on
            whole arrays, which `block_writer` writes. The tables in `operations` say what each PTX instruction becomes,
            with `special_registers`, `matrix_instructions`, `warpgroup_instructions` and `tensor_memory_instructions`
            for these kinds. `ptxas_model` estimates the machine code, `access_fusion` finds the accesses that ptxas
            fuses, `value_numbering` the instructions that access one location, and the loads that only test it before
            an atomic operation, `waiting_loops` the loops that spin and what their flags guard, `unwritten_fragments`
            the registers that may be read before they are written, `warpgroup_registers` those that a wgmma or a
            tcgen05.ld still uses. Machine code has two forms: of a block that all lanes run (`machine_blocks`), of a
            loop that a few lanes run (`narrow_loops`, with `narrow_groups`). Both are written by `machine_writer` and
            `machine_operations`, with `machine_access` for what an access needs; `machine_compiler` compiles them, and
            `kept_code` keeps that. `half_products` and `aligned_sums` do what tensor cores do.
observer    The base class of whatever sees a launch. Checks, race detection, counters and traces are observers.
count       `launch_counting` adds up instructions, requests, sectors and branches by source line, and how often loops
            went round; `counters` names them. `warp_steps` traces the accesses and the source lines of the first warps.
            `sampling` scales the counters of some blocks to a large grid. `reuse` tells what caches may serve.
check       `access_checks` tests bounds, alignment and initialisation before each access; `operand_layouts` whether a
            wgmma reads its operands in the way that they were copied; `unwritten_reads` notes reads of local arrays
            that nobody wrote. `races` looks for accesses by different threads that nothing orders: `race_records` keeps
            who touched what, also by `volatile` in place of __syncwarp, `race_words` compares, `vector_clocks` knows
            what synchronisation weaker than a barrier orders, and `race_report` words the error; `operand_reads` keeps
            what each warpgroup's wgmma reads. `cluster_lifetimes` finds accesses to blocks that may have ended,
            `proxy_fences` what TMA and wgmma may not see yet, `stale_texels` textures of what the same launch has
            written. For kernels of several devices, `device_races` does the same between these, with `device_clocks`,
            which know PTX's rules for flags; `flag_waits` finds threads that wait for a flag.
run         `device` launches; `scheduler` runs the blocks; `observation` lists the observers of a launch;
            `device_group` runs kernels of several devices at the same time; `narrow_runs` calls the machine code of
            loops that few lanes run, `machine_runs` that of blocks that all lanes run, both from what `machine_state`
            keeps; the other modules serve the instructions that need more than arithmetic on registers.

How a launch runs:

1.  `Device.launch` checks the launch (`launch_limits`, `options`) and cuts the grid into chunks of thread blocks that
    fit the processor's cache. Every thread of a `chunk` is a *lane*; `geometry` knows which. A register is one NumPy
    array with one entry per lane, or a single entry where all lanes hold the same value.
2.  The `scheduler` keeps, for each basic block, the group of lanes whose program counter stands there, and runs the
    lowest one. Lanes that branch apart become two groups and merge again where they meet. A function that gets only
    some of the lanes gathers their registers, runs the same code and scatters the results. Up to 1024
    lanes that go round in a loop run it in machine code, once they have done so for a while (`narrow_runs`); so do all
    lanes of a chunk of 4,096 or more a block of plain arithmetic, loads and stores (`machine_runs`).
3.  `barriers` and `warp_convergence` hold lanes back at block-wide barriers and warp-wide instructions until the others
    arrive. In a cooperative launch, blocks wait for one another too. `standstill` finds deadlocks, and explains what is
    wrong with a launch that does not end; `counted_loops` knows loops that do.
4.  `atomics` lets lanes take turns without a loop over them. `async_copies`, `tensor_copies` (by TMA, with
    `copy_reductions`) and `mbarriers` serve copies that arrive only where a thread waits for them. `warp_operations`
    exchanges values between the lanes of a warp (`undefined_values` finds out whether a result depends on one that no
    lane gave), and `matrix_operations` multiplies matrices that its lanes hold together, `warpgroups` those of wgmma,
    `tensor_memory` those of tcgen05; `late_reads` looks whether what they read was left alone. `textures` serves
    surfaces, too. `system_services` provides what a kernel asks of the driver: `printf`, assert, clocks, memory.
5.  All the while, observers are told what happens. The launch returns a `LaunchProfile`: its counters, and the trace of
    its first warps.

Where to add what: a PTX instruction is a row of a table in `operations`; a check is an `Observer`, listed in
`observation`; a counter is a field of `Counts`; a special register is a row in `special_registers`.

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
    DeviceDeadlock,
    DeviceRace,
    DivergentBarrier,
    DivergentWarp,
    HostPointer,
    IllegalAddress,
    InstructionLimit,
    InvalidLaunch,
    MisalignedAddress,
    MissingProxyFence,
    PeerAccess,
    SimulatorError,
    SimulatorFailure,
    StaleTexel,
    UndefinedShuffle,
    UninitializedRead,
    UnorderedRegisters,
    UnsupportedInstruction,
    WrongArgument,
    WrongDescriptor,
)
from warplab.simulator.memory.device_memory import Allocation
from warplab.simulator.observer import Observer
from warplab.simulator.ptx.parser import load
from warplab.simulator.ptx.program import Entry, Param, Program
from warplab.simulator.run.device import Device, default_device, pop_device, push_device, replace_device, using_device
from warplab.simulator.run.options import Options
