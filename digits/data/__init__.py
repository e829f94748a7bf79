"""Datasets: folders of arrays, made from images."""
