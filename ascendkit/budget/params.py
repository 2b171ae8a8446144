"""Parameters of one rank: its layers, the ends of the model, and who else holds the same ones."""

from __future__ import annotations

from collections.abc import Iterator

from ascendkit.budget.plan import Plan
from ascendkit.budget.stages import chunks, mirrored, of_rank
from ascendkit.model import Layer, Model, Weight, layer_weights, layers, step_weights
from ascendkit.model.layers import mtp_layer


def held_layers(m: Model, p: Plan, rank: int) -> list[Layer]:
    """Layers of a pipeline rank; the prediction layer stands on the rank of the last stage."""
    mine = [chunks(m, p)[i] for i in of_rank(p, rank)]
    every = layers(m)
    found = [every[i] for c in mine for i in c.layers]
    return [*found, mtp_layer(m)] if p.mtp and any(c.last for c in mine) else found


def held_weights(m: Model, p: Plan, rank: int) -> Iterator[Weight]:
    """Weights of a pipeline rank, before tensor and expert parallelism split them.

    The prediction layer embeds tokens too: its rank keeps a copy of the embedding.
    """
    mine = [chunks(m, p)[i] for i in of_rank(p, rank)]
    for layer in held_layers(m, p, rank):
        yield from layer_weights(m, layer).values()
    last = any(c.last for c in mine)
    ends = step_weights(m)
    if any(c.first for c in mine) or (last and p.mtp):
        yield ends["embedding"]
    if last:
        yield ends["head"]


def share(p: Plan, w: Weight) -> int:
    """Ranks that split a weight."""
    return p.ep if w.shard == "ep" else p.tp if w.shard else 1


def local_params(m: Model, p: Plan, rank: int) -> list[tuple[str, float, int]]:
    """Trained parameters of a rank: (group, parameters, replicas that hold the same ones)."""
    dense = experts = 0.0
    for w in held_weights(m, p, rank):
        if w.shard == "ep":
            experts += w.params / p.ep
        else:
            dense += w.params / share(p, w)
    copies = 2 if mirrored(p) else 1
    same = p.dp * p.cp
    return [("dense", dense, same * copies), ("expert", experts, same * p.tp // p.ep * copies)]


def most_params(m: Model, p: Plan) -> list[tuple[str, float, int]]:
    """:func:`local_params` of the rank that has most."""
    return max((local_params(m, p, r) for r in range(p.pp)), key=lambda g: sum(n for _, n, _ in g))
