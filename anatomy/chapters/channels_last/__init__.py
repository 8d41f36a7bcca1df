"""Convolutions and a residual network in NCHW and in channels_last."""
