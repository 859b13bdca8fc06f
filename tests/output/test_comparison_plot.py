"""The picture of a comparison of methods."""

from __future__ import annotations

import numpy as np
import pytest

from unpoison import Plan
from unpoison.output.comparison_plot import draw_comparison
from unpoison.simulation.population import Population
from unpoison.simulation.scores import score
from unpoison.simulation.trials import run_trials


@pytest.mark.slow
def test_a_comparison_shows_every_line() -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    values, names = Population.of(np.linspace(0, 1, 4000)), ["oracle", "ostrich"]
    rows, _ = run_trials(plan, values, "point:C", 0.3, names, rng=np.random.default_rng(1))
    axis = draw_comparison(score(rows)).axes[0]
    labels = [text.get_text() for text in axis.get_yticklabels()]
    assert set(labels) == {"oracle", "ostrich", "ostrich (ungrouped)"}
