"""Which event types may come from outside."""

import pytest

from lamplighter.domain.events import PRODUCT_FAMILIES, ProductFamily, checked_outside_type
from lamplighter.kit.errors import UsageError


@pytest.mark.parametrize("family", sorted(PRODUCT_FAMILIES))
def test_a_family_of_the_product_s_own_is_refused_with_what_to_use_instead(family: str) -> None:
    with pytest.raises(ProductFamily) as refused:
        checked_outside_type(f"{family}.ended.well")
    assert f"`{family}.*`" in refused.value.message
    assert f"my-{family}.ended.well" in refused.value.hint
    assert checked_outside_type(f"my-{family}.ended.well")


@pytest.mark.parametrize("text", ["deploy.finished", "runs.ended", "run-time.ended", "lamp.run.ended"])
def test_any_other_family_is_free(text: str) -> None:
    assert checked_outside_type(text) == text


@pytest.mark.parametrize("text", ["run", "Run.ended", "run..ended", "", "run.ended\n"])
def test_what_is_no_type_is_none_here_either(text: str) -> None:
    with pytest.raises(UsageError):
        checked_outside_type(text)
