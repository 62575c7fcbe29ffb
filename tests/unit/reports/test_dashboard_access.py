"""The dashboard answers only under known host names and, with a token, only to its holders."""

import asyncio
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from sluice.cli.dashboard import _token
from sluice.errors import SettingError
from sluice.reports.dashboard.access import demand_hosts
from sluice.reports.dashboard.app import serve

TOKEN = "0123456789abcdef"
PAGE = "/assets/page.css"


def get(
    app: FastAPI, path: str, headers: dict[str, str] | None = None, host: str = "127.0.0.1:8080"
) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://dashboard") as client:
            return await client.get(path, headers={"host": host, **(headers or {})})

    return asyncio.run(ask())


@pytest.mark.parametrize(
    "host",
    [
        *("rebound.example", "10.0.0.7", "localhost.evil.example", "evil.example:8080", "", "*"),
        *("127.0.0.1.evil.example", "[::2]:8080", "evil-localhost", "0.0.0.0"),
    ],
)
def test_a_request_under_another_host_name_is_refused(host: str, tmp_path: Path) -> None:
    refused = get(serve(tmp_path), PAGE, host=host)
    assert (refused.status_code, "--allow-host" in refused.text) == (400, True)
    refused = get(serve(tmp_path, token=TOKEN), f"/?token={TOKEN}", host=host)
    assert (refused.status_code, "set-cookie" in refused.headers) == (400, False)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8080", "LocalHost", "[::1]:8080"])
def test_loopback_is_served(host: str, tmp_path: Path) -> None:
    assert get(serve(tmp_path), PAGE, host=host).status_code == 200


def test_a_host_that_the_operator_allows_is_served_and_no_other(tmp_path: Path) -> None:
    app = serve(tmp_path, hosts=("Water.example", "[fd00::7]", "10.0.0.7"))
    for host in ("water.example:8080", "[fd00::7]", "10.0.0.7:80"):
        assert get(app, PAGE, host=host).status_code == 200
    for host in ("a.water.example", "127.0.0.1", "[fd00::8]"):
        assert get(app, PAGE, host=host).status_code == 400


@pytest.mark.parametrize("name", ["*", "*.example", "", "water.example:80", "http://water"])
def test_a_pattern_or_an_address_with_a_port_is_no_host(name: str) -> None:
    with pytest.raises(SettingError, match="is not a host name"):
        demand_hosts(["water.example", name])


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": TOKEN},
        {"authorization": f"Bearer {TOKEN[:-1]}"},
        {"authorization": "Bearer "},
        {"cookie": "sluice-token=wrong"},
        {"cookie": f"token={TOKEN}"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/now", "/metrics", "/events", PAGE, "/?token=wrong"])
def test_a_request_without_the_token_is_refused(
    headers: dict[str, str], path: str, tmp_path: Path
) -> None:
    refused = get(serve(tmp_path, token=TOKEN), path, headers)
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert "set-cookie" not in refused.headers


def test_the_token_opens_the_page_once_by_address_and_then_by_its_cookie(tmp_path: Path) -> None:
    app = serve(tmp_path, token=TOKEN)
    for scheme in ("Bearer", "bearer"):
        assert get(app, PAGE, {"authorization": f"{scheme} {TOKEN}"}).status_code == 200
    for path in ("/", "//evil.example/"):
        opened = get(app, f"{path}?token={TOKEN}")
        assert (opened.status_code, opened.headers["location"]) == (303, "/")
    cookie = opened.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert get(app, PAGE, {"cookie": cookie.partition(";")[0]}).status_code == 200


def test_without_a_token_the_page_asks_for_none(tmp_path: Path) -> None:
    assert get(serve(tmp_path), PAGE).status_code == 200


def test_a_token_is_long_and_its_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "token.txt"
    path.touch(mode=0o600)
    path.write_text(TOKEN + "\n")
    assert _token(path) == TOKEN
    for text in (TOKEN[:-1], TOKEN + "\n" + TOKEN, TOKEN + "é"):
        path.write_text(text)
        with pytest.raises(SettingError, match="at least 16 printable characters"):
            _token(path)
    path.write_text(TOKEN)
    path.chmod(0o644)
    with pytest.raises(SettingError, match="can be read by others"):
        _token(path)
    path.chmod(0o600)
    path.write_text("x" * 1_024)
    assert _token(path) == "x" * 1_024
    path.write_text("x" * 1_025)
    with pytest.raises(SettingError, match="too large"):
        _token(path)
