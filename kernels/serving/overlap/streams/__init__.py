"""Copies, kernels and video in streams: schedules in virtual time and on a GPU, their races, and a pipeline.

The names here are those that the lesson uses.
"""

from kernels.serving.overlap.streams.hazards import races
from kernels.serving.overlap.streams.pipeline import Stages, pipelined
from kernels.serving.overlap.streams.preprocess import Preprocess
from kernels.serving.overlap.streams.schedule import DEFAULT, Schedule
from kernels.serving.overlap.streams.timeline import ONE_COPY_ENGINE, simulate
from kernels.serving.overlap.streams.video import frames_on_cpu, make_clip
