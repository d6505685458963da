"""What a figure of matplotlib shows, in numbers, as E2B's SDKs read it."""

import datetime
import math
import re
import sys

POINTS_MAX = 100_000
UNIT = re.compile(r"[(\[]([^()\[\]]+)[)\]]\s*$")


def plain(value):
    """A value as JSON has it: no number that isn't finite, times as ISO 8601."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, (float,)):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(one) for one in value]
    if isinstance(value, (datetime.date, datetime.time)):
        return None if value != value else value.isoformat()
    if hasattr(value, "tolist") and type(value).__module__.startswith("numpy"):
        if value.dtype.kind == "M":
            return plain([str(one) for one in value]) if value.ndim else str(value)
        return plain(value.tolist())
    return str(value)


def describe(figure):
    """The chart of a figure: one for its one diagram, or one with an element for each diagram."""
    diagrams = [_diagram(axes) for axes in figure.get_axes()]
    if len(diagrams) == 1:
        return diagrams[0]
    if not diagrams:
        return None
    title = figure._suptitle.get_text() if figure._suptitle else None
    return {"type": "superchart", "title": title, "elements": diagrams}


def _diagram(axes):
    for reader in (_pie, _box_and_whisker, _bar, _scatter, _line):
        found = reader(axes)
        if found:
            return {"title": axes.get_title() or None} | found
    return {"type": "unknown", "title": axes.get_title() or None, "elements": []}


def _labels(axes, swapped=False):
    x, y = axes.get_xlabel() or None, axes.get_ylabel() or None
    if swapped:
        x, y = y, x
    return {"x_label": x, "y_label": y, "x_unit": _unit(x), "y_unit": _unit(y)}


def _unit(label):
    found = UNIT.search(label or "")
    return found.group(1) if found else None


def _ticks(name, axis, scale):
    from matplotlib import category, dates

    converter = getattr(axis, "get_converter", lambda: getattr(axis, "converter", None))()
    ticks = axis.get_ticklocs()
    if isinstance(converter, category.StrCategoryConverter):
        scale = "categorical"
    elif isinstance(
        axis.get_major_formatter(),
        (dates.DateFormatter, dates.AutoDateFormatter, dates.ConciseDateFormatter),
    ):
        scale = "datetime"
        ticks = dates.num2date(ticks)
    return {
        name + "_ticks": [plain(tick) for tick in ticks],
        name + "_tick_labels": [label.get_text() for label in axis.get_ticklabels()],
        name + "_scale": scale,
    }


def _points(axes, kind, elements):
    if sum(len(one["points"]) for one in elements) > POINTS_MAX:
        return None
    return (
        {"type": kind, "elements": elements}
        | _labels(axes)
        | _ticks("x", axes.xaxis, axes.get_xscale())
        | _ticks("y", axes.yaxis, axes.get_yscale())
    )


def _line(axes):
    lines = [line for line in axes.get_lines() if len(line.get_xdata())]
    if not lines or axes.collections or axes.patches:
        return None
    elements = [
        {
            "label": str(line.get_label()),
            "points": _pairs(line.get_xdata(orig=True), line.get_ydata(orig=True)),
        }
        for line in lines
    ]
    return _points(axes, "line", elements)


def _pairs(xs, ys):
    return [[plain(x), plain(y)] for x, y in zip(list(xs)[: POINTS_MAX + 1], ys)]


def _scatter(axes):
    collections = sys.modules["matplotlib.collections"]
    if not axes.collections or axes.get_lines() or axes.patches:
        return None
    if not all(isinstance(one, collections.PathCollection) for one in axes.collections):
        return None
    elements = [
        {"label": str(one.get_label()), "points": _pairs(*one.get_offsets().T)} for one in axes.collections
    ]
    return _points(axes, "scatter", elements)


def _bar(axes):
    containers = sys.modules["matplotlib.container"]
    groups = [one for one in axes.containers if isinstance(one, containers.BarContainer)]
    if not groups:
        return None
    lying = groups[0].orientation == "horizontal"
    axis = axes.yaxis if lying else axes.xaxis
    names = list(zip(axis.get_ticklocs(), (label.get_text() for label in axis.get_ticklabels())))
    elements = []
    for group in groups:
        for bar in group.patches:
            start, width = (bar.get_y(), bar.get_height()) if lying else (bar.get_x(), bar.get_width())
            value = bar.get_width() if lying else bar.get_height()
            elements.append(
                {
                    "label": _name(start + width / 2, abs(width), names, len(groups)),
                    "group": str(group.get_label()),
                    "value": plain(value),
                }
            )
    return {"type": "bar", "elements": elements} | _labels(axes, swapped=lying)


def _name(middle, width, names, groups):
    """The text of the tick that a bar stands at; bars of several groups stand around it."""
    near = min(names, key=lambda name: abs(name[0] - middle), default=None)
    if near and near[1] and abs(near[0] - middle) <= width * groups:
        return near[1]
    return f"{middle:g}"


def _pie(axes):
    patches = sys.modules["matplotlib.patches"]
    if not axes.patches or not all(isinstance(one, patches.Wedge) for one in axes.patches):
        return None
    elements = [
        {
            "label": str(wedge.get_label()),
            "angle": plain(abs(float(wedge.theta2) - float(wedge.theta1))),
            "radius": plain(wedge.r),
        }
        for wedge in axes.patches
    ]
    return {"type": "pie", "elements": elements}


def _box_and_whisker(axes):
    """Boxes are closed rectangles; what else belongs to one is found by where it lies."""
    patches = sys.modules["matplotlib.patches"]
    boxes = [one.get_path().vertices[:5] for one in axes.patches if isinstance(one, patches.PathPatch)]
    lines = [line.get_xydata() for line in axes.get_lines()]
    boxes += [line for line in lines if len(line) == 5 and (line[0] == line[4]).all()]
    if not boxes or axes.collections:
        return None
    spans = [(box.min(axis=0), box.max(axis=0)) for box in boxes]
    # Boxes of one diagram are equally wide, and stand beside each other in that direction.
    flat = [line for line in lines if len(line) == 2]
    lying = not any(_inside(line, *spans[0], across=0, along=1) for line in flat)
    across, along = (1, 0) if lying else (0, 1)
    axis = axes.yaxis if lying else axes.xaxis
    names = list(zip(axis.get_ticklocs(), (label.get_text() for label in axis.get_ticklabels())))
    elements = []
    for low, high in spans:
        q1, q3 = float(low[along]), float(high[along])
        middle = float(low[across] + high[across]) / 2
        found = {"min": q1, "max": q3, "median": None}
        outliers = []
        for line in lines:
            if len(line) == 2 and _inside(line, low, high, across, along):
                found["median"] = float(line[0][along])
            elif len(line) == 2 and (line[:, across] == middle).all():
                found["min"] = min(found["min"], float(line[:, along].min()))
                found["max"] = max(found["max"], float(line[:, along].max()))
        for line in axes.get_lines():
            points = line.get_xydata()
            if line.get_linestyle() in ("None", "none", "") and (points[:, across] == middle).all():
                outliers += [float(value) for value in points[:, along]]
        if found["median"] is None:
            return None
        elements.append(
            {"label": _name(middle, high[across] - low[across], names, 1), "outliers": outliers}
            | found
            | {"first_quartile": q1, "third_quartile": q3}
        )
    return {"type": "box_and_whisker", "elements": elements} | _labels(axes, swapped=lying)


def _inside(line, low, high, across, along):
    """Whether a line of two points is a median: level, from side to side of the box."""
    return (
        line[0][along] == line[1][along]
        and low[along] <= line[0][along] <= high[along]
        and {float(line[0][across]), float(line[1][across])} == {float(low[across]), float(high[across])}
    )
