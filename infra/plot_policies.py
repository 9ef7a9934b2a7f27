"""Draws docs/policies.png from the figures of tests/load/policy_figures.py (`make plot`)."""

import json
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

PICTURE = Path(__file__).parents[1] / "docs" / "policies.png"


def main() -> None:
    """Read figures from the file that is named, write the picture."""
    figures = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    figure, axes = plt.subplots(figsize=(10, 6), dpi=110)
    for name, tokens in figures.items():
        points = [(at, one) for at, one in enumerate(tokens, start=1) if one is not None]
        full = name == "full history"
        axes.plot(
            [point[0] for point in points],
            [point[1] for point in points],
            label=name,
            linewidth=2.5 if name == "progressive" else 1.3,
            color="0.6" if full else None,
            linestyle="--" if full else "-",
        )
    axes.set_yscale("log")
    axes.set_xlabel("turns committed")
    axes.set_ylabel("tokens of the context (o200k_base, logarithmic)")
    axes.set_title("Context tokens by policy, one conversation of about 100,000 tokens")
    axes.grid(visible=True, which="both", alpha=0.25)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    figure.tight_layout()
    figure.savefig(PICTURE)


if __name__ == "__main__":
    main()
