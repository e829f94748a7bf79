"""What the cells of lesson 12 take from the rooms of the application: datasets, scenes, plans and their service."""

from digits.data import building, scenes
from digits.data.build_options import BuildOptions
from digits.data.builtin import sklearn_digits
from digits.data.dataset import Dataset
from digits.data.scene_drawing import SceneOptions, unpack_boxes
from digits.deploy import plans, service
from digits.workspace import Workspace

__all__ = [
    "BuildOptions",
    "Dataset",
    "SceneOptions",
    "Workspace",
    "building",
    "plans",
    "scenes",
    "service",
    "sklearn_digits",
    "unpack_boxes",
]
