"""Beside the ladder: Winograd, FFT, depthwise convolutions, and LSTM layers."""
