"""What the shell offers for a MODEL: schemes, problems and files. `application.py` joins what Bash
splits at colons.
"""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from tailpath.domains.register import FORMATS, find_domain, schemes


def complete_model(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """What the shell offers for a MODEL: the bundled problems of a scheme, or schemes and files."""
    scheme, colon, _ = incomplete.partition(":")
    domain = find_domain(scheme) if colon else None
    if domain is not None:
        known = [f"{scheme}:{problem}" for problem in domain.problems]
        return [CompletionItem(name) for name in known if name.startswith(incomplete)]
    known = [f"{each}:" for each in (*FORMATS, *schemes()) if f"{each}:".startswith(incomplete)]
    # Files first: in Bash they replace what was offered before.
    return [
        CompletionItem(incomplete, type="file"),
        *map(CompletionItem, known if incomplete else []),
    ]
