"""What the scores of a weights file would tell, for the data holder, who decides whether that is meant."""

from targetdp.release.settings import Settings
from targetdp.release.shares import in_words, singled_out


class SingledOutError(ValueError):
    """Weights nearly give a column by itself, and the data holder has not said that this is meant."""

    def __init__(self, columns: dict[str, float], settings: Settings) -> None:
        self.columns = columns
        names = ", ".join(f"{name!r} ({share:.0%})" for name, share in columns.items())
        super().__init__(
            f"the weights single out {names}: {weights_in_words(settings)}. Whoever gets the scores learns "
            "nearly that column of everybody, with noise; if that is meant, say so (--yes, or accept_weights)"
        )


def must_be_meant(settings: Settings) -> None:
    """Weights that single out a column need the data holder's word."""
    if settings.asked is None or settings.accept_weights:
        return
    columns = singled_out(settings.features, settings.asked.in_order_of(settings.features))
    if columns:
        raise SingledOutError(columns, settings)


def weights_in_words(settings: Settings) -> str:
    """What each score is made of."""
    if settings.asked is None:
        return ""
    matrix = settings.asked.in_order_of(settings.features)
    return "; ".join(
        f"{name}: {in_words(settings.features, row)}"
        for name, row in zip(settings.asked.scores, matrix, strict=True)
    )
