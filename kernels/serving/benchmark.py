"""Lab 11's benchmark: utilisation, ways to share a GPU, a pipeline, and a service under load."""

from kernels.serving import recordings
from kernels.serving.measurements import MEASUREMENTS, TABLES
from warpcourse.bench.benchmark import Benchmark

BENCHMARK = Benchmark(recordings, MEASUREMENTS, TABLES, __doc__)

if __name__ == "__main__":
    raise SystemExit(BENCHMARK.main())
