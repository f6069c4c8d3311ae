"""The variables for proxies and certificates: who goes through which proxy, and which values end a run."""

from __future__ import annotations

import importlib.util
import ssl

import pytest
import trustme

import inside
from agentgym_gym import AgentGymEnv, errors
from agentgym_gym.evaluate import ChatAgent
from fake_model import completion, replies
from fake_server import FakeServer, in_turn

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in (*VARIABLES, *CERTIFICATES, "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    inside.forget_certificates()
    yield
    inside.forget_certificates()


@pytest.mark.parametrize(
    ("url", "exceptions", "proxied"),
    [
        ("http://10.1.2.3:8000/v1", "10.0.0.0/8", False),
        ("http://10.1.2.3:8000/v1", "192.168.0.0/16\n10.0.0.0/8\n", False),
        ("http://10.1.2.3:8000/v1", "11.0.0.0/8, 10.1.2.4", True),
        ("http://10.1.2.3:8000/v1", "10.*", False),
        ("http://10.1.2.3:8000/v1", "10.1.2.3:8000", False),
        ("http://10.1.2.3:8000/v1", "10.1.2.3:80", True),
        ("http://10.1.2.3:8000/v1", "10.0.0.0/8:8000", False),
        ("http://10.1.2.3:8000/v1", "::ffff:10.0.0.0/104", False),
        ("http://[fd00::1]/v1", "fd00::/8", False),
        ("http://[fd00::1]/v1", "[fd00::]/8", False),
        ("http://[fd00::1]/v1", "FD00:0:0::1", False),
        ("http://[fd00::1]/v1", "[fd00::1]:80", False),
        ("http://[fd00::1]/v1", "[fd00::1]:81", True),
        ("http://[fd00::1]/v1", "fe80::/10", True),
        ("http://api.model.invalid/v1", ".Model.Invalid", False),
        ("http://api.model.invalid/v1", "*.model.invalid:80", False),
        ("http://api.model.invalid/v1", "del.invalid", True),
        ("http://api.model.invalid/v1", "10.0.0.0/8", True),
        ("http://api.model.invalid/v1", "localhost *", False),
        ("http://b\u00fccher.invalid/v1", "xn--bcher-kva.invalid", False),
        ("http://localhost.:1/v1", "", False),
    ],
)
def test_exceptions_are_ranges_addresses_names_and_patterns(monkeypatch, url, exceptions, proxied):
    """A proxy of an unknown kind is an error only for the addresses that go through it."""
    monkeypatch.setenv("HTTP_PROXY", "ftp://proxy.invalid")
    monkeypatch.setenv("NO_PROXY", exceptions)
    if proxied:
        with pytest.raises(errors.BadOption, match="HTTP_PROXY"):
            ChatAgent("m", base_url=url)
    else:
        ChatAgent("m", base_url=url)


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"HTTP_PROXY": "ftp://one"}, "HTTP_PROXY"),
        ({"HTTP_PROXY": "ftp://one", "http_proxy": ""}, None),
        ({"HTTP_PROXY": "ftp://one", "http_proxy": "ftp://two"}, "http_proxy"),
        ({"HTTP_PROXY": "ftp://one", "ALL_PROXY": "ftp://two"}, "HTTP_PROXY"),
        ({"HTTPS_PROXY": "ftp://one", "ALL_PROXY": "ftp://two"}, "ALL_PROXY"),
        ({"HTTPS_PROXY": "ftp://one"}, None),
        ({"HTTP_PROXY": "ftp://one", "NO_PROXY": "*", "no_proxy": "other.invalid"}, "HTTP_PROXY"),
    ],
)
def test_lower_case_wins_and_the_scheme_s_variable_comes_first(monkeypatch, variables, named):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if named is None:
        ChatAgent("m", base_url="http://model.invalid/v1")
        return
    with pytest.raises(errors.BadOption) as caught:
        ChatAgent("m", base_url="http://model.invalid/v1")
    assert caught.value.argument == named


@pytest.mark.parametrize(
    "value",
    [
        "http://user:pass-of-mine@proxy:99999",
        "http://user:pass-of-mine",
        "http://user:pass/of-mine@proxy:1",
        "user:pass-of-mine @proxy:1",
        "socks4://user:pass-of-mine@proxy:1",
        "http://::1:3128",
        "http://:3128",
        "http://proxy:1/path",
        "://",
    ],
)
def test_a_malformed_proxy_ends_the_run_before_it_starts_without_its_password(monkeypatch, value):
    monkeypatch.setenv("HTTPS_PROXY", value)
    with pytest.raises(errors.BadOption, match=r"^HTTPS_PROXY .*in the environment should be") as caught:
        ChatAgent("m", base_url="https://model.invalid/v1")
    assert "mine" not in f"{caught.value} {caught.value.as_dict()}"


@pytest.mark.parametrize("entry", ["10.0.0.0/33", "[::1", "fe80::/200", "a.invalid:http", "http://a.invalid"])
def test_an_invalid_exception_ends_the_run_before_it_starts(monkeypatch, entry):
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:1")
    monkeypatch.setenv("NO_PROXY", f"*,{entry}")
    with pytest.raises(errors.BadOption, match=r"^NO_PROXY = ") as caught:
        ChatAgent("m", base_url="http://model.invalid/v1")
    assert entry in str(caught.value)


@pytest.mark.skipif(importlib.util.find_spec("socksio") is not None, reason="socksio is installed")
def test_socks_without_its_package_ends_the_run_before_it_starts(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5h://me:pass-of-mine@127.0.0.1:1")
    with pytest.raises(errors.BadOption, match="pip install socksio") as caught:
        ChatAgent("m", base_url="http://model.invalid/v1")
    assert "mine" not in str(caught.value)


def test_a_proxy_gets_its_password_and_other_variables_do_not_matter(started, monkeypatch):
    proxy = started(FakeServer(in_turn(completion("Action: a"))))
    monkeypatch.setenv("http_proxy", f"{proxy.url.replace('//', '//me:secret@')}\n")
    monkeypatch.setenv("HTTPS_PROXY", "http://[")
    monkeypatch.setenv("NO_PROXY", "fd00::/8\nlocalhost")
    assert replies(ChatAgent("m", base_url="http://model.invalid/v1"))[0].action == "Action: a"
    assert proxy.requests[0].headers["proxy-authorization"] == "Basic bWU6c2VjcmV0"


def test_messages_name_the_proxy_of_a_failed_connection(monkeypatch, unreachable_url):
    monkeypatch.setenv("HTTP_PROXY", unreachable_url.replace("//", "//me:pass-of-mine@"))
    agent = ChatAgent("m", base_url="http://model.invalid/v1", retry_seconds=0)
    through = unreachable_url.replace("//", "//***@")
    with pytest.raises(errors.ModelUnreachable) as caught:
        replies(agent)
    assert f"cannot connect through the proxy {through} of HTTP_PROXY" in str(caught.value)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("status", [403, 407])
def test_a_proxy_that_refuses_the_credentials_ends_the_run_at_once(started, monkeypatch, scheme, status):
    """Of https, a proxy refuses the tunnel; of http, the request."""
    proxy = started(FakeServer(in_turn(*[(status, "")] * 9)))
    variable = f"{scheme.upper()}_PROXY"
    monkeypatch.setenv(variable, proxy.url.replace("//", "//me:pass-of-mine@"))
    with pytest.raises(errors.AccessDenied, match=f"{status}") as caught:
        replies(ChatAgent("m", base_url=f"{scheme}://model.invalid/v1"))
    assert "pass-of-mine" not in str(caught.value)
    if (scheme, status) != ("http", 403):  # which may be of the server
        assert f"the proxy in {variable}, or list the server in NO_PROXY" in str(caught.value)


@pytest.mark.parametrize("variable", CERTIFICATES)
@pytest.mark.parametrize("wrong", ["missing", "empty", "a key", "a folder"])
def test_variables_without_certificates_end_a_run_before_it_starts(monkeypatch, tmp_path, variable, wrong):
    path = tmp_path / "certificates"
    if wrong == "empty":
        path.touch()
    elif wrong == "a key":
        trustme.CA().private_key_pem.write_to_path(path)
    elif wrong == "a folder":
        path.mkdir()
        trustme.CA().cert_pem.write_to_path(path / "ca.pem")  # OpenSSL finds it only by its hash
    monkeypatch.setenv(variable, str(path))
    for make in (
        lambda: ChatAgent("m", base_url="https://model.invalid/v1"),
        lambda: AgentGymEnv("TextCraft", server="https://games.invalid"),
    ):
        with pytest.raises(errors.BadOption, match=f"^{variable} = ") as caught:
            make()
        assert str(path) in str(caught.value)
    ChatAgent("m", base_url="http://model.invalid/v1")
    AgentGymEnv("TextCraft", server="http://games.invalid").close()


def test_requests_variable_adds_certificates(started, monkeypatch, tmp_path):
    authority, served = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(served)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    server = started(FakeServer(in_turn(completion("Action: a")), tls=served))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    assert replies(ChatAgent("m", base_url=f"{server.url}/v1"))[0].action == "Action: a"


def test_a_user_s_client_that_cannot_be_made_is_named():
    def make():
        raise ValueError("no such proxy: http://user:pass-of-mine@[")

    agent = ChatAgent("m", base_url="http://model.invalid/v1", http_client=make, retry_seconds=0)
    with pytest.raises(errors.BadOption, match=r"^http_client failed: ValueError: no such proxy") as caught:
        replies(agent)
    assert "mine" not in str(caught.value)
