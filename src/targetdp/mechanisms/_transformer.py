"""A scikit-learn transformer, to simulate private data inside pipelines. It is *not* a release."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from targetdp._core import Floats, check
from targetdp.guarantee import Guarantee
from targetdp.mechanisms._base import noise_mechanisms
from targetdp.mechanisms._plan import LEAST_NOISE, least_noise
from targetdp.normalization import data_scales, normalize


class SimulatedPrivacy(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Standardize columns by the training data, clip rows to the unit ball, add simulated noise.

    Args:
        mechanism: The name of a noise mechanism, or ``"least-noise"``.
        B: People within this distance are hidden from each other.
        epsilon: ε of the guarantee that a release with such noise would have.
        delta: δ of it.
        random_state: A seed or generator, as scikit-learn takes them.

    Raises:
        ValueError: From `fit`: a number is outside its range, or no mechanism has this name.

    Guarantees: noise of the same distribution as a release's with this mechanism and (B, ε, δ); a private
    projection draws a fresh R at each call, where a release keeps a public one.
    Does not guarantee: any privacy. The noise comes from ``random_state`` and can be repeated, and column
    scales come from the data. To release a table, normalize it and call a mechanism's `privatize`.
    Edges: the same ``random_state`` gives the same noise at every call, so a pipeline can be repeated.

    Example:
        >>> X = np.random.default_rng(0).normal(size=(50, 3))
        >>> SimulatedPrivacy(B=0.25, epsilon=4, random_state=1).fit_transform(X).shape
        (50, 3)
    """

    def __init__(
        self,
        mechanism: str = LEAST_NOISE,
        *,
        B: float = 0.25,
        epsilon: float = 4.0,
        delta: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.mechanism = mechanism
        self.B = B
        self.epsilon = epsilon
        self.delta = delta
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 (scikit-learn's interface)
        """Learn the column scales and choose the mechanism."""
        X = validate_data(self, X, dtype=np.float64)
        guarantee = Guarantee(self.B, self.epsilon, self.delta)
        name = check.choice("mechanism", self.mechanism, [LEAST_NOISE, *noise_mechanisms()])
        if name == LEAST_NOISE:
            self.mechanism_ = least_noise(guarantee, X.shape[1]).mechanism
        else:
            self.mechanism_ = noise_mechanisms()[name](guarantee)
        self.scales_ = data_scales(X)
        return self

    def transform(self, X: Any) -> Floats:
        """Standardize, clip and add noise."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        seed = check_random_state(self.random_state).randint(0, 2**31 - 1)
        return self.mechanism_.privatize(normalize(X, self.scales_).X, np.random.default_rng(seed))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags
