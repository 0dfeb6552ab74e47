"""Many small cases in one test: collecting and reporting them one by one costs more than running them."""

import functools
import inspect

import pytest


def each(names, values, ids=None):
    """Parametrise as `pytest.mark.parametrize` does, but run all cases within one test.

    Every case is run. The first failure is raised, with a note that names the cases that fail. What is prepared per
    test (a temporary folder, a patch) would be shared by the cases, so a test that asks for such a thing is
    parametrised by pytest. The test is skipped if every case is.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = [_arguments(names, value) for value in values]
    assert cases, f"there are no cases of {names}"

    def decorate(test):
        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in names]
        assert len(left) == len(signature.parameters) - len(names), f"{test.__name__} does not take all of {names}"

        @functools.wraps(test)
        def run(*args, **kwargs):
            failed, skipped = [], []
            for i, case in enumerate(cases):
                try:
                    test(*args, **kwargs, **case)
                except pytest.skip.Exception as reason:
                    skipped.append(reason)
                except (Exception, pytest.fail.Exception) as error:
                    failed.append((error, _label(case, ids, i)))
            if failed:
                error = failed[0][0]
                error.add_note(f"{len(failed)} of {len(cases)} cases fail: {'; '.join(label for _, label in failed)}")
                raise error
            if len(skipped) == len(cases):
                raise skipped[0]

        run.__signature__ = signature.replace(parameters=left)
        return run

    return decorate


def _arguments(names, value):
    if isinstance(value, type(pytest.param())):
        assert not value.marks, "a case with a mark is a test of its own"
        value = value.values if len(names) > 1 else value.values[0]
    return dict(zip(names, value, strict=True)) if len(names) > 1 else {names[0]: value}


def _label(case, ids, i):
    if ids is not None and not callable(ids):
        return str(list(ids)[i])
    return ", ".join(f"{name}={(ids and ids(value)) or repr(value)[:200]}" for name, value in case.items())
