"""Is the GPU busy, and why not? What utilisation samples, what profilers say, and which road to take.

The names here are those that the lesson uses.
"""

from kernels.serving.utilisation.course_cases import CASES
from kernels.serving.utilisation.monitor import Monitor, draw_recording
from kernels.serving.utilisation.profilers import ORIGIN, by_kernel, recorded_profiles
from kernels.serving.utilisation.three_roads import decide
from kernels.serving.utilisation.virtual import Kernel, looked_at
