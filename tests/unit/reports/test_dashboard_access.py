"""The dashboard answers only under known host names and, with a token, only to its holders."""

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from sluice.cli.dashboard import _token
from sluice.errors import SettingError
from sluice.reports.dashboard.access import TokenGuard
from sluice.reports.dashboard.app import serve

TOKEN = "0123456789abcdef"


@pytest.fixture
def guarded() -> TestClient:
    page = Starlette(routes=[Route("/", lambda _: PlainTextResponse("the page"))])
    return TestClient(TokenGuard(page, TOKEN), follow_redirects=False)


@pytest.mark.parametrize("host", ["rebound.example", "10.0.0.7", "localhost.evil.example", ""])
def test_a_request_under_another_host_name_is_refused(host: str, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").touch()
    client = TestClient(serve(tmp_path), base_url="http://127.0.0.1")
    assert client.get("/assets/page.css").status_code == 200
    assert client.get("/assets/page.css", headers={"host": host}).status_code == 400


def test_a_host_that_the_operator_allows_is_served(tmp_path: Path) -> None:
    client = TestClient(serve(tmp_path, hosts=("water.example",)), base_url="http://water.example")
    assert client.get("/assets/page.css").status_code == 200


@pytest.mark.parametrize(
    "headers", [{}, {"authorization": "Bearer wrong"}, {"cookie": "sluice-token=wrong"}]
)
def test_a_request_without_the_token_is_refused(
    guarded: TestClient, headers: dict[str, str]
) -> None:
    refused = guarded.get("/", headers=headers)
    assert (refused.status_code, "the page" in refused.text) == (401, False)
    assert guarded.get("/?token=wrong").status_code == 401


def test_the_token_opens_the_page_once_by_address_and_then_by_its_cookie(
    guarded: TestClient,
) -> None:
    assert guarded.get("/", headers={"authorization": f"Bearer {TOKEN}"}).text == "the page"
    opened = guarded.get(f"/?token={TOKEN}")
    assert (opened.status_code, opened.headers["location"]) == (303, "/")
    cookie = opened.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert guarded.get("/").text == "the page"  # the client keeps the cookie


def test_the_whole_dashboard_asks_for_its_token(tmp_path: Path) -> None:
    client = TestClient(serve(tmp_path, token=TOKEN), base_url="http://127.0.0.1")
    for path in ("/", "/now", "/metrics", "/events", "/assets/page.css"):
        assert client.get(path).status_code == 401


def test_a_token_is_long_and_its_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "token.txt"
    path.touch(mode=0o600)
    path.write_text(TOKEN + "\n")
    assert _token(path) == TOKEN
    path.write_text(TOKEN[:-1])
    with pytest.raises(SettingError, match="at least 16 printable characters"):
        _token(path)
    path.write_text(TOKEN)
    path.chmod(0o644)
    with pytest.raises(SettingError):
        _token(path)
