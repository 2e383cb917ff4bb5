"""Leave out connections whose library is not installed: `make doors` gives each of them an environment of its own."""

from __future__ import annotations

from importlib.util import find_spec

LIBRARIES = {
    "evaluate": ("evaluate",),
    "evidently": ("evidently",),
    "language_models": ("lm_eval", "inspect_ai"),
    "loggers": ("wandb", "tensorboardX", "tensorboard"),
    "mlflow": ("mlflow",),
    "skore": ("skore",),
    "sql": ("pglast", "duckdb"),
}
# In its own environment a door with a missing library fails, because pytest then finds no test.
collect_ignore = [f"test_{name}.py" for name, needed in LIBRARIES.items() if not all(map(find_spec, needed))]
