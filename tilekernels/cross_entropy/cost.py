"""Cost of softmax cross-entropy over the vocabulary, forward and backward in one pass."""

from ascendkit.cost import Cost
from ascendkit.formats import width


def cost(num_tokens, vocab, dtype="bf16"):
    """Vector FLOPs and bytes; the logits' gradient overwrites them."""
    return (
        Cost(dict(num_tokens=num_tokens, vocab=vocab, w=width(dtype)))
        .flop("vector", "fp32", "max, exp, sum, gradient", "6*num_tokens*vocab")
        .read("logits, twice (online max and sum, then gradient)", "2*num_tokens*vocab*w")
        .write("logit gradient", "num_tokens*vocab*w")
    )
