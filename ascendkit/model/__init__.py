"""Models as the budget counts them: configuration, layer roles, weights."""

from ascendkit.model.config import Model, model, models
from ascendkit.model.layers import Layer, layers
from ascendkit.model.weights import Weight, layer_weights, step_weights

__all__ = [
    "Layer",
    "Model",
    "Weight",
    "layer_weights",
    "layers",
    "model",
    "models",
    "step_weights",
]
