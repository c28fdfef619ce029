"""What the sizes of a mixer must be, said in one way."""

from __future__ import annotations

from training.errors import TrainingError


def check_at_least(kind: str, least: int, **fields: int | float | None) -> None:
    """Raises TrainingError for the first of a config's fields that is below `least`; None is not looked at."""
    for name, value in fields.items():
        if value is not None and not value >= least:
            raise TrainingError(f"mixer {kind}: {name} is {value}; it is at least {least}")


def check_divides(kind: str, name: str, parts: int, of: str, whole: int) -> None:
    """Raises TrainingError where `whole` is no multiple of `parts`."""
    if whole % parts:
        below = whole // parts * parts
        choice = f"{below} or {below + parts}" if below else str(parts)
        raise TrainingError(
            f"mixer {kind}: {name} is {parts}, and {of} {whole} is no multiple of it. With {name} {parts}, choose "
            f"{of} {choice}"
        )
