"""Policies on disk, as `.json` for people or `.npz` for size. Versioned, lossless, no pickle.

A file has a header and arrays, which `docs/formats.md` lists by kind. In the header are the sizes
of the model the policy was made for and a hash of its arrays, so that a table of choice numbers
never meets a model whose choices are numbered otherwise. Beside the numbers stand the names they
are for, so that other programs can follow the policy. A policy of names (`markov`, `memory`) has no
model of its own: on reading, its names must be names of the model.

In `.npz` the header is the member `header` and each array a member; in `.json` the arrays are lists
in the member `arrays`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from tailpath.domains.register import Domain, find_domain
from tailpath.errors import FormatError, OptionError, PolicyError, TailpathError
from tailpath.formats.archives import Archive, write_archive
from tailpath.formats.files import (
    converted_array,
    located,
    read_text,
    shorten,
    write_bytes,
)
from tailpath.formats.headers import OBJECT, member_of, read_header
from tailpath.formats.policy_kinds import PolicyReader, check_fit, pack
from tailpath.graph import Array
from tailpath.model.checks import PARTS, fingerprint
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.options import answering, takes_alpha
from tailpath.policies.given import as_policy, policy_of
from tailpath.policies.kinds import MarkovPolicy
from tailpath.policies.policy import Policy

FORMAT = "tailpath policy"
VERSION = 1


@answering
@takes_alpha
def write_policy(policy: Any, path: str | os.PathLike[str], *, alpha: float | None = None) -> None:
    """Write a policy made of tables to a file.

    Parameters
    ----------
    policy : Policy or solution
        A policy made of tables, not of functions; of a solution, its policy.
    path : str or path
        Where to; the suffix, `.json` for people or `.npz` for size, decides the form.
    alpha : float in (0, 1], optional
        Of a solution that has a policy for every alpha, which one; by default the one it was solved
        for.

    Raises
    ------
    OptionError
        If the policy is made of functions, or the suffix is another.
    FormatError
        If the file cannot be written.

    Examples
    --------
    >>> tp.write_policy(tp.solve_expected(ssp), "expected.json")
    >>> tp.read_policy("expected.json", ssp)
    <MarkovPolicy 1 decision>
    """
    path_name = os.fsdecode(path)
    suffix = _suffix(path_name)
    try:
        stored = pack(policy_of(policy, alpha))
    except (FormatError, OptionError) as error:
        raise type(error)(f"{path_name}: {error}") from None
    header = {"format": FORMAT, "version": VERSION, "kind": stored.kind, **stored.header}
    if stored.ssp is not None:
        header["model"] = fingerprint(stored.ssp)
    if suffix == ".npz":
        write_archive(path_name, {"header": json.dumps(header), **stored.arrays})
        return
    if stored.arrays:
        header["arrays"] = {name: array.tolist() for name, array in stored.arrays.items()}
    write_bytes(path_name, (_lines(header) + "\n").encode("utf-8", "backslashreplace"))


@answering
def read_policy(path: str | os.PathLike[str], ssp: SSP | IntervalSSP) -> Policy:
    """Read a policy and check that it belongs to this model.

    On a model made by `within`, a policy of names for the model behind it is understood.

    Parameters
    ----------
    path : str or path
        A file that `write_policy` wrote, `.json` or `.npz`; or a policy that comes with a domain,
        as `sepsis:clinicians`.
    ssp : SSP
        The model it is for.

    Returns
    -------
    Policy
        The policy.

    Raises
    ------
    FormatError
        If the file cannot be read.
    PolicyError
        If the policy was made for another model, or does not fit this one.

    Examples
    --------
    >>> tp.write_policy(tp.policy(ssp, {"home": "train"}), "train.json")
    >>> tp.read_policy("train.json", ssp).action("home")
    'train'
    """
    if isinstance(ssp, IntervalSSP):
        ssp = ssp.inside
    path_name = os.fsdecode(path)
    scheme, colon, name = path_name.partition(":")
    is_scheme = colon and isinstance(path, str) and len(scheme) > 1 and scheme.isidentifier()
    domain = find_domain(scheme) if is_scheme else None
    if domain is not None:
        return _of_domain(domain, name, ssp)
    try:
        reader, found = _parts(path_name)
        _check_model(reader.header["model"], ssp)
        policy = reader.policy(ssp)
        for name in sorted(found - reader.array_names()):
            raise FormatError(f"{path_name}: unknown array {shorten(repr(name))}")
        if isinstance(policy, MarkovPolicy) and ssp.origin is not None:
            return as_policy(ssp, policy.decisions)
        check_fit(policy, ssp, path_name)
    except RecursionError:
        raise FormatError(f"{path_name}: nested too deeply") from None
    except TailpathError as error:
        kind = FormatError if isinstance(error, FormatError) else PolicyError
        raise kind(located(error, path_name)) from None
    return policy


def _parts(path: str) -> tuple[PolicyReader, set[str]]:
    """The header of a file with the function that gives its arrays, and their names."""
    if _suffix(path) == ".npz":
        archive = Archive(path)
        text = archive.text("header")
        header = read_header(text, f"{path}: member header", path, FORMAT, VERSION)
        return PolicyReader.of(header, archive.array, path), archive.names() - {"header"}
    header = read_header(read_text(path), path, path, FORMAT, VERSION)
    arrays = member_of(header, "arrays", OBJECT.otherwise({}), f"{path}: ")
    return PolicyReader.of(header, partial(_listed, arrays, path), path), set(arrays)


def _of_domain(domain: Domain, name: str, ssp: SSP) -> Policy:
    if name not in domain.policies:
        known = ", ".join(f"{domain.scheme}:{known}" for known in domain.policies)
        raise OptionError(f"{domain.scheme}:{name}: no such policy; there is {known or 'none'}")
    made = as_policy(ssp, domain.policies[name](ssp))
    check_fit(made, ssp, f"{domain.scheme}:{name}")
    return made


def _check_model(found: Any, ssp: SSP) -> None:
    """Refuse a policy that was made for another model; one of names was made for none."""
    here = fingerprint(ssp)
    if found is None or found.get("sha256") == here["sha256"]:
        return
    for what in ("states", "choices", "outcomes"):
        there, size = found.get(f"n_{what}"), here[f"n_{what}"]
        if there != size:
            raise PolicyError(
                f"this policy was made for a model with {there!r} {what}; this model has {size}"
            )
    parts = [part for part in PARTS if part in found and found[part] != here[part]]
    raise PolicyError(
        "this policy was made for another model of the same size:"
        f" {', '.join(parts) or 'probabilities, costs or targets'} differ"
    )


def _listed(members: Mapping[str, Any], path: str, name: str, dtype: Any, axes: int) -> Array:
    """An array of a JSON file, with the same strictness as that of an archive."""
    location = f"{path}: arrays.{name}"
    if not isinstance(members.get(name), list):
        raise FormatError(f"{location} is missing or not a list")
    try:
        found = np.array(members[name])
    except (ValueError, OverflowError):
        raise FormatError(f"{location} is ragged") from None
    if found.size == 0:
        return np.zeros(found.shape if found.ndim == axes else (0,) * axes, dtype=dtype)
    if np.dtype(dtype).kind == "f" and found.dtype.kind in "iu":
        found = found.astype(np.float64)
    return converted_array(found, dtype, axes, location)


def _suffix(path: str) -> str:
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in (".json", ".npz"):
        raise OptionError(f"{path}: policies are saved as .json or .npz")
    return suffix


def _lines(header: Mapping[str, Any]) -> str:
    """JSON with one row of a table per line."""

    def member_of(value: Any) -> str:
        if isinstance(value, list) and value and isinstance(value[0], list):
            return "[\n    " + ",\n    ".join(map(plain, value)) + "\n  ]"
        return plain(value)

    plain = partial(json.dumps, ensure_ascii=False)
    members = [f"{plain(key)}: {member_of(value)}" for key, value in header.items()]
    return "{\n  " + ",\n  ".join(members) + "\n}"
