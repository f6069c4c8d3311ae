"""Tables of prices."""

from __future__ import annotations

import sys

import pytest

import needs
from agentgym_gym.errors import BadOption, MissingExtra
from agentgym_gym.evaluate import Price, price_of, read_prices

if sys.version_info < (3, 11):
    pytest.importorskip("tomli", reason=needs.reason("tomli"))

TOML = """
["Qwen/Qwen3-*"]
input = 0.2
output = 0.6

["Qwen/Qwen3-8B"]
input = 0.1
cached_input = 0.01
output = 0.3

["*"]
input = 1
output = 2
"""


def test_a_model_is_found_by_its_name_and_then_by_the_first_pattern(tmp_path):
    file = tmp_path / "prices.toml"
    file.write_text(TOML, "utf-8")
    prices = read_prices(file)
    assert price_of("Qwen/Qwen3-8B", prices) == Price(input=0.1, output=0.3, cached_input=0.01)
    assert price_of("Qwen/Qwen3-14B", prices) == Price(input=0.2, output=0.6)
    assert price_of("qwen/qwen3-14b", prices) == Price(input=1, output=2)
    assert price_of("other", {"some": Price(1, 1)}) is None


def test_json_is_read_too(tmp_path):
    file = tmp_path / "prices.json"
    file.write_text('{"gpt-4.1*": {"input": 2, "cached_input": 0.5, "output": 8}}', "utf-8")
    assert price_of("gpt-4.1-mini", read_prices(file)) == Price(input=2, output=8, cached_input=0.5)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.toml", "[gpt-4.1]\ninput = 1\noutput = 2\n", "no key '1'.*quotation marks"),
        ("a.toml", "[m]\ninput = 1\n", "output in the price of 'm' in .*a.toml is missing"),
        ("a.toml", "[m]\ninput = -1\noutput = 2\n", "input = -1"),
        ("a.toml", "[m]\ninput = nan\noutput = 2\n", "input = nan"),
        ("a.toml", "[m]\ninput = inf\noutput = 2\n", "input = inf"),
        ("a.toml", "[m]\ninput = true\noutput = 2\n", "input = True"),
        ("a.toml", "[m]\ninput = '1'\noutput = 2\n", "input = '1'"),
        ("a.toml", "m = 3\n", "price of 'm' in .*: expected a table .* got 3"),
        ("a.toml", "[m\n", "cannot be read as a table of prices"),
        ("a.json", '{"m": ', "cannot be read as a table of prices"),
        ("a.json", "[" * 100_000, "cannot be read as a table of prices"),
        ("a.json", "[]", "should be a table .* not \\[\\]"),
        ("a.json", f'{{"m": {{"input": 1{"0" * 400}, "output": 1}}}}', "should be a number from 0"),
    ],
)
def test_invalid_prices_are_named(tmp_path, name, text, said):
    file = tmp_path / name
    file.write_text(text, "utf-8")
    with pytest.raises(BadOption, match=said):
        read_prices(file)


def test_a_file_that_is_not_there_or_not_text(tmp_path):
    with pytest.raises(BadOption, match=r"cannot read .*none\.toml: No such file"):
        read_prices(tmp_path / "none.toml")
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadOption, match="cannot be read as a table of prices"):
        read_prices(tmp_path / "a.toml")


def test_where_toml_cannot_be_read_the_error_names_what_to_install(tmp_path, monkeypatch):
    file = tmp_path / "prices.toml"
    file.write_text(TOML, "utf-8")
    for module in ("tomllib", "tomli"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match="tomli"):
        read_prices(file)
