"""The application of lab 12: train, watch, look inside and deploy a network in one page, as NVIDIA DIGITS did.

    python -m warplab digits

Below the page each room works alone: datasets and runs are folders of plain files, and jobs are processes of their own.
"""
