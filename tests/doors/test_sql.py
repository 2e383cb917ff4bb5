"""Does PostgreSQL's own parser accept the queries of the page, and the expressions that DuckDB runs?"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import trueodds as to
from tests.calibrators.rows import draw_predictions

pglast = pytest.importorskip("pglast")
PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "databases.md"


def test_the_queries_of_the_page_parse():
    page = PAGE.read_text(encoding="utf-8")
    queries = re.findall(r"^```sql\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert queries
    for query in queries:
        assert len(pglast.parse_sql(query)) == 1
        assert len(pglast.parse_sql(query.replace(" p,", " round(p::numeric, 3) AS p,", 1))) == 1


def test_a_query_that_is_wrong_does_not_parse():
    with pytest.raises(pglast.parser.ParseError):
        pglast.parse_sql("SELECT FROM WHERE")


@pytest.mark.parametrize(
    "name", ["beta", "isotonic", "histogram", "spline", "scaling_binning", "venn_abers", "dirichlet"]
)
@pytest.mark.parametrize("k", [2, 3])
def test_the_expressions_of_calibrators_parse(name, k):
    P, y = draw_predictions(400, k, 1.7, 1)
    calibrator = to.fit(to.Predictions(y, P), name)
    for expression in calibrator.to_sql([f"p {j}" for j in range(k)]):
        (statement,) = pglast.parse_sql(f'SELECT {expression} AS "q" FROM predictions')
        assert statement.stmt.targetList[0].name == "q"


def test_duckdb_runs_the_table_query_and_the_expression_on_a_database_file(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    P, y = draw_predictions(500, 2, 1.7, 1)
    with duckdb.connect(tmp_path / "predictions.db") as connection:
        connection.execute("CREATE TABLE predictions (p DOUBLE, label INTEGER)")
        connection.executemany(
            "INSERT INTO predictions VALUES (?, ?)", [[p, int(c)] for p, c in zip(P[:, 1], y, strict=True)]
        )
        (query,) = re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        cells = connection.execute(query).df()
        calibrator = to.fit(to.Predictions(y, P), "isotonic")
        q = connection.execute(f"SELECT {calibrator.to_sql('p')} AS q FROM predictions").df()["q"]
    assert int(cells["n"].sum()) == 500
    assert np.sort(q) == pytest.approx(np.sort(calibrator.predict_proba(P)[:, 1]), abs=1e-12)
