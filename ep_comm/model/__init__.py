"""What a machine makes of dispatch and combine: volumes, constants fitted on published tables,
predictions beside them, and what follows for FP8, links and skew. Pure Python."""

from ep_comm.model.fit import Constants, constants
from ep_comm.model.predict import Prediction, predict
from ep_comm.model.volume import Volume, volume

__all__ = ["Constants", "Prediction", "Volume", "constants", "predict", "volume"]
