"""What a diagram shows: its marks, title, legend and axis labels, which each diagram defines."""

from __future__ import annotations

from typing import Any, ClassVar

from trueodds.diagrams.diagram_table import DiagramTable


class DiagramContent(DiagramTable):
    """A table of every plotted number, with the methods that draw it, which a diagram overrides."""

    figure_size: ClassVar[tuple[float, float]] = (6.4, 4.6)  # inches of a figure with one panel
    strip_height: ClassVar[float] = 0.0  # share of the height of the axes that the strip of predictions takes
    aspect_ratio: ClassVar[float] = 0.0  # height of a panel relative to its width, where x and y have equal units
    has_inset_axes: ClassVar[bool] = False  # whether a panel consists of several axes that fill it
    hides_axes: ClassVar[bool] = False  # whether panels have no ticks and keep their own scale

    @property
    def has_equal_units(self) -> bool:
        """Whether matplotlib keeps equal units along x and y in a figure of its own."""
        return self.aspect_ratio > 0 and not self.hides_axes

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw one panel.

        Parameters
        ----------
        ax : matplotlib.axes.Axes
            Where to draw.
        panel : int
            Index into `panels`.
        """
        raise NotImplementedError

    def default_title(self) -> str:
        """Return the default title of a figure.

        Returns
        -------
        str
            The question that the diagram answers.
        """
        raise NotImplementedError

    @property
    def picture_title(self) -> str:
        """The caller's title or the headline, also of a picture that shows neither."""
        return self.presentation.heading("") or self.default_title()

    def caption(self) -> str:
        """Return the default title of given axes.

        Returns
        -------
        str
            The name of the view, and its main result in a few words.
        """
        return f"{self.panels['title'][0]}: {self.panels['aside'][0]}"

    def legend(self) -> list[tuple[Any, str]]:
        """Return the entries of the legend.

        Returns
        -------
        list of (artist, str)
            Marks and their labels.
        """
        raise NotImplementedError

    def axis_labels(self) -> tuple[str, str]:
        """Return the axis labels.

        Returns
        -------
        tuple of str
            The labels of the x axis and of the y axis.
        """
        raise NotImplementedError

    @property
    def calibration_question(self) -> str:
        """The headline of a reliability diagram."""
        if self.lens == "confidence":
            return "Does confidence match accuracy?"
        return "Do predicted probabilities match observed frequencies?"

    @property
    def predicted_label(self) -> str:
        """The label of a probability axis."""
        return "Confidence" if self.lens == "confidence" else "Predicted probability"

    @property
    def observed_label(self) -> str:
        """The label of the axis of observed event rates."""
        return "Accuracy" if self.lens == "confidence" else "Observed frequency"
