"""The console in a real Chromium: what people see, do, and are kept from.

One browser and one broker with tokens serve all of it; a second broker, without authentication, is
what pages of other sites attack.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import pytest

from pulsar_py import AuthenticationToken
from pulsar_py.blocking import Client
from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.testing.broker_thread import BrokerThread
from tests.browser import REBOUND_HOST, chromium
from tests.unit.test_web import GUARDED, token

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

EVIL = "<img src=x onerror=hacked()>"
SCRIPT = "<script>hacked()</script>"
ORDERS = "persistent/public/default/orders"
MILLIS = 30_000
"""For what has to come, on a busy machine."""
VIEWS = (
    "#/",
    "#/tenants",
    "#/tenant/public",
    "#/namespace/public/default",
    "#/namespace/public/default/policies",
    "#/namespace/public/default/permissions",
    f"#/topic/{ORDERS}",
    f"#/topic/{ORDERS}/messages",
    f"#/topic/{ORDERS}/schemas",
    f"#/topic/{ORDERS}/policies",
    f"#/topic/{ORDERS}/storage",
    f"#/subscription/{ORDERS}/billing",
    f"#/subscription/{ORDERS}/billing/holes",
    f"#/subscription/{ORDERS}/billing/messages",
    "#/cluster",
    "#/storage",
    "#/settings",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def broker(browser: Browser) -> Iterator[BrokerThread]:
    config = {**GUARDED, "brokerClientAuthenticationParameters": token("admin")}
    with (
        BrokerThread(config=config) as running,
        Client(running.service_url, authentication=AuthenticationToken(token("admin"))) as client,
    ):
        _fill(running, client)
        yield running


def rest(broker: BrokerThread, method: str, path: str, body: Any = None) -> None:
    """One call as the admin, which has to work."""
    request = urllib.request.Request(
        broker.web_service_url + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {token('admin')}", "Content-Type": "application/json"},
    )
    urllib.request.urlopen(request).close()


def _fill(broker: BrokerThread, client: Client) -> None:
    """Topics with something to see, and names and values that want to be scripts."""
    orders = client.create_producer("orders", producer_name=EVIL)
    billing = client.subscribe(
        "orders",
        "billing",
        consumer_type=ConsumerType.Shared,
        consumer_name=EVIL,
        ack_receipt_enabled=True,
    )
    client.subscribe("orders", EVIL, consumer_type=ConsumerType.Shared).close()
    for number in range(60):
        value = {"order": number, "amount": number % 10, "note": SCRIPT}
        orders.send(
            json.dumps(value).encode(),
            {EVIL: SCRIPT, "source": "web"},
            partition_key=EVIL if number == 3 else f"customer-{number % 7}",
        )
    received = [billing.receive() for _ in range(40)]
    for each in received[1::2]:
        billing.acknowledge(each)
    client.create_producer(f"persistent://public/default/{EVIL}").close()
    rest(broker, "PUT", "/admin/v2/persistent/public/default/parts/partitions", 3)
    parts = client.create_producer("parts")
    for number in range(9):
        parts.send(b"part %d" % number, partition_key=str(number))
    dead = client.create_producer("orders-billing-DLQ")
    for number in range(3):
        dead.send(b"dead %d" % number, {"REAL_TOPIC": "persistent://public/default/revived"})
    grant = "/admin/v2/persistent/public/default/orders/permissions/friend"
    rest(broker, "POST", grant, ["consume"])


@pytest.fixture(scope="module")
def admin(browser: Browser, broker: BrokerThread) -> Iterator[SignedIn]:
    with SignedIn(browser, broker, "admin") as made:
        yield made


@pytest.fixture
def page(admin: SignedIn) -> Iterator[Page]:
    """A page that is signed in as admin; nothing may go wrong on it."""
    yield admin.page
    admin.check()


class SignedIn:
    """A page in a browser of its own, where somebody has signed in."""

    page: Page

    def __init__(self, browser: Browser, broker: BrokerThread, role: str, **options: Any) -> None:
        self._context = browser.new_context(**options)
        self._broker, self._role = broker, role
        self.wrong: list[str] = []

    def __enter__(self) -> Self:
        page = self._context.new_page()
        page.set_default_timeout(MILLIS)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("console", self._note)
        page.goto(self._broker.web_service_url + "/console/")
        page.fill("#token", token(self._role))
        page.click("text=Sign in >> nth=-1")
        page.wait_for_selector("#main h1")  # where one signs in there is another `main`
        self.page = page
        return self

    def _note(self, message: Any) -> None:
        # A browser notes each answer that is an error: the first is that nobody is signed in.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.wrong.append(message.text)

    def __exit__(self, kind: object, *_: object) -> None:
        self._context.close()
        if kind is None:
            self.check()

    def check(self) -> None:
        """Fail if the browser complained of anything."""
        assert not self.wrong, self.wrong


def show(page: Page, view: str) -> None:
    """Go to a view, and wait until it is there."""
    page.evaluate(
        "place => { document.getElementById('main').replaceChildren(); location.hash = place; dispatchEvent(new HashChangeEvent('hashchange')); }",
        view,
    )
    page.wait_for_selector("main h1")
    page.wait_for_selector("[aria-busy=true]", state="detached")


def button(page: Page, text: str) -> Any:
    return page.get_by_role("button", name=text, exact=True)


def test_signing_in_is_kept_in_memory_alone(browser: Browser, broker: BrokerThread) -> None:
    with SignedIn(browser, broker, "admin") as made:
        page = made.page
        assert page.inner_text(".role") == "admin"
        kept = page.evaluate("[document.cookie, localStorage.length, sessionStorage.length]")
        assert kept == ["", 0, 0]
        assert page.context.cookies() == []
        page.reload()
        page.wait_for_selector("#token")
        page.fill("#token", "nonsense")
        page.click("text=Sign in >> nth=-1")
        page.wait_for_selector("text=The broker does not accept this.")


def test_the_way_from_the_overview_to_an_entry(page: Page) -> None:
    show(page, "#/")
    page.wait_for_selector(".tile:has-text('Messages in')")
    page.wait_for_selector("svg.plot")
    page.click("nav.menu >> text=Tenants")
    page.click("main >> text=public")
    page.click("main >> text=default")
    page.click("main a.name >> text=orders >> nth=0")
    page.click("main a.name >> text=billing")
    page.wait_for_selector("text=What holds it up")
    page.click("nav.tabs >> text=Holes")
    page.wait_for_selector("text=entries from")
    assert page.locator("rect.hole").count() == 60
    assert page.locator("rect.hole-10").count() == 20
    page.locator("svg.hole-picture").focus()
    page.keyboard.press("ArrowRight")
    assert "is acknowledged" in page.inner_text(".told")
    page.keyboard.press("Enter")
    page.wait_for_selector("details[open] pre")
    assert '"order": 1' in page.inner_text("details[open] pre >> nth=0")
    assert page.inner_text("details[open] code.id >> nth=0").count(":") == 1  # no partition


def test_names_properties_and_payloads_are_text(browser: Browser, broker: BrokerThread) -> None:
    with SignedIn(browser, broker, "admin") as made:
        page = made.page
        page.evaluate("() => { window.hacked = () => { window.isHacked = true; }; }")
        encoded = "%3Cimg%20src%3Dx%20onerror%3Dhacked()%3E"
        views = (
            *VIEWS,
            f"#/topic/persistent/public/default/{encoded}",
            f"#/subscription/{ORDERS}/{encoded}",
        )
        seen = ""
        for view in views:
            show(page, view)
            page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
            seen += page.inner_text("main")
            assert page.locator("main img").count() == 0, view
            assert page.locator("main script").count() == 0, view
            assert not page.evaluate("window.isHacked"), view
        assert seen.count(EVIL) > 5
        assert SCRIPT in seen
        # Whatever a file of the console did by mistake, the browser makes no HTML of a text.
        refused = page.evaluate(
            "() => { try { document.body.innerHTML = '<b>'; return ''; } catch (e) { return e.name; } }"
        )
        assert refused == "TypeError"
        assert "TrustedHTML" in made.wrong.pop()


def test_messages_are_searched_and_saved(page: Page) -> None:
    show(page, f"#/topic/{ORDERS}/messages")
    page.wait_for_selector(".messages details >> nth=49")
    page.fill("#m-where", "amount>7")
    page.fill("#m-property", "source=web")
    button(page, "Search").click()
    page.wait_for_selector("text=12 messages, 60 entries looked at")
    assert page.locator(".messages details").count() == 12
    with page.expect_download() as saving:
        button(page, "Save as a file").click()
    lines = saving.value.path().read_text().splitlines()
    assert len(lines) == 12
    assert json.loads(lines[0])["properties"]["source"] == "web"
    page.fill("#m-where", "")
    page.fill("#m-key", EVIL)
    button(page, "Search").click()
    page.wait_for_selector("text=1 message, 60 entries looked at")
    show(page, "#/topic/persistent/public/default/parts/messages")
    page.wait_for_selector("text=9 messages")
    page.fill("#m-text", "part 4")
    button(page, "Search").click()
    page.wait_for_selector("text=1 message, 9 entries looked at")


def test_a_topic_is_made_filled_grown_and_deleted(page: Page) -> None:
    show(page, "#/namespace/public/default")
    button(page, "Create topic").click()
    page.fill("#field-name", "made-here")
    page.fill("#field-partitions", "2")
    button(page, "Create").click()
    page.click("main a.name >> text=made-here")
    button(page, "Send a message").click()
    page.fill("#field-value", "hello")
    page.fill("#field-properties", "a=b")
    button(page, "Send").click()
    page.wait_for_selector("text=The broker stored it as")
    button(page, "More partitions").click()
    button(page, "Grow").click()
    page.wait_for_selector("main >> text=made-here-partition-2")
    button(page, "Delete").click()
    assert button(page, "Delete").last.is_disabled()
    page.fill("#field-typed", "made-here")
    page.check("#field-force")
    button(page, "Delete").last.click()
    page.wait_for_selector("text=was deleted")
    page.wait_for_url("**/#/namespace/**")


def test_skipping_says_first_what_it_would_do(page: Page) -> None:
    show(page, "#/topic/persistent/public/default/parts")
    button(page, "New subscription").click()
    page.fill("#field-name", "mine")
    page.select_option("#field-start", "the oldest message")
    button(page, "Create").click()
    page.wait_for_selector(".tile:has-text('Backlog') >> text=9")
    button(page, "Skip").click()
    button(page, "What would that do?").click()
    page.wait_for_selector("dialog h2 >> text=Skip 1 entry")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    button(page, "Skip").click()
    page.select_option("#field-what", "everything")
    button(page, "What would that do?").click()
    page.wait_for_selector("text=9 entries will not be delivered any more.")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    assert page.locator(".tile:has-text('Backlog') >> text=9").count() == 1
    button(page, "Skip").click()
    page.select_option("#field-what", "everything")
    button(page, "What would that do?").click()
    page.fill("#field-typed", "mine")
    page.locator("dialog").get_by_role("button", name="Skip", exact=True).click()
    page.wait_for_selector(".tile.good:has-text('Backlog') >> text=0")


def test_dead_letters_go_back(page: Page) -> None:
    show(page, "#/topic/persistent/public/default/orders-billing-DLQ")
    button(page, "New subscription").click()
    page.fill("#field-name", "back")
    page.select_option("#field-start", "the oldest message")
    button(page, "Create").click()
    page.wait_for_selector(".tile:has-text('Backlog') >> text=3")
    button(page, "Send back").click()
    page.locator("dialog").get_by_role("button", name="Send back", exact=True).click()
    page.wait_for_selector("text=3 messages went back.")
    show(page, "#/topic/persistent/public/default/revived/messages")
    page.wait_for_selector("text=dead 2")


def test_a_policy_is_set_and_removed(page: Page) -> None:
    show(page, f"#/topic/{ORDERS}/policies")
    row = page.locator("tr", has_text="maxProducers")
    row.get_by_role("button", name="Set").click()
    page.fill("#field-value", "12")
    page.locator("dialog").get_by_role("button", name="Set", exact=True).click()
    page.wait_for_selector("tr:has-text('maxProducers') .badge.good >> text=topic")
    row.get_by_role("button", name="Remove").click()
    page.locator("dialog").get_by_role("button", name="Remove", exact=True).click()
    page.wait_for_selector("tr:has-text('maxProducers') .badge >> text=broker")


def test_permissions_are_granted_and_withdrawn(page: Page) -> None:
    show(page, "#/namespace/public/default/permissions")
    button(page, "Grant").click()
    page.fill("#field-role", EVIL)
    page.check("#field-produce")
    page.locator("dialog").get_by_role("button", name="Grant", exact=True).click()
    row = page.locator("tr", has_text=EVIL)
    row.get_by_text("produce", exact=True).wait_for()
    row.get_by_role("button", name="Withdraw").click()
    page.locator("dialog").get_by_role("button", name="Withdraw", exact=True).click()
    page.wait_for_selector("text=No role has a right here by itself.")


def test_versions_of_a_schema_are_compared(page: Page, broker: BrokerThread) -> None:
    fields = [{"name": "id", "type": "int"}]
    for name in ("old", "new"):
        fields = [*fields, {"name": name, "type": ["null", "string"], "default": None}]
        text = json.dumps({"type": "record", "name": "Order", "fields": fields})
        body = {"type": "AVRO", "schema": text, "properties": {}}
        rest(broker, "POST", "/admin/v2/schemas/public/default/schemed/schema", body)
    rest(broker, "PUT", "/admin/v2/persistent/public/default/schemed")
    show(page, "#/topic/persistent/public/default/schemed/schemas")
    page.wait_for_selector(".difference .added")
    added = "".join(page.locator(".difference .added").all_inner_texts())
    assert '"new"' in added
    assert '"old"' not in added
    assert '"old"' in page.inner_text(".difference")


def test_a_topic_of_another_broker_has_a_link_there(page: Page) -> None:
    topic = "persistent/public/default/far"

    def answer(route: Any) -> None:
        if "/lookup/" in route.request.url:
            route.fulfill(json={"httpUrl": "http://other.example:8080"})
        else:
            route.fulfill(status=307, headers={"Location": "http://other.example:8080/x"})

    page.route(f"**/lookup/v2/topic/{topic}", answer)
    page.route(f"**/admin/console/topic/{topic}*", answer)
    show(page, f"#/topic/{topic}")
    page.wait_for_selector("text=Another broker of the cluster serves this.")
    assert page.get_attribute(".problem a", "href") == (
        f"http://other.example:8080/console/#/topic/{topic}"
    )
    page.unroute_all()


HOUR_MILLIS = 3_600_000


def of_cluster(now: int) -> dict[str, Any]:
    """What `brokers/load` says in a cluster; names and reasons are text that wants to be more."""
    here, there, bundle = "here:8080", "there:8080", "public/default/0x00000000_0x80000000"
    broker = {
        "url": "pulsar://x:6650", "started": now - HOUR_MILLIS, "updated": now, "usage": 0.5,
        "cpu": 0.5, "memory": 0.25, "bandwidthIn": 0.0, "bandwidthOut": 0.0, "topics": 3,
        "producers": 2, "consumers": 1, "msgRate": 10.0, "throughput": 1000.0,
    }  # fmt: skip
    return {
        "brokerId": here, "leaderId": here, "isLeading": True, "isLeaving": False,
        "session": {"isGood": False, "doubts": 2}, "heldLookups": 1,
        "brokers": [
            {**broker, "brokerId": here, "webUrl": "http://here:8080", "bundles": [bundle]},
            {**broker, "brokerId": there, "webUrl": "http://there:8080", "smoothedUsage": 0.9,
             "bundles": ["public/default/0x80000000_0xffffffff"]},
        ],
        "bundles": [{"bundle": bundle, "since": now - 2 * HOUR_MILLIS}],
        "changes": [
            {"at": now - 5000, "bundle": bundle, "change": "lost", "reason": SCRIPT},
            {"at": now - 1000, "bundle": bundle, "change": "gained", "reason": "nobody owned it"},
        ],
        "balancing": [
            {"at": now, "kind": "move", "bundle": bundle, "broker": there, "destination": here,
             "reason": "90 % against 50 %", "error": "refused: not a super user"},
        ],
    }  # fmt: skip


def test_the_brokers_of_a_cluster_are_shown(page: Page) -> None:
    answer = of_cluster(int(time.time() * 1000))
    page.route("**/admin/v2/brokers/load", lambda route: route.fulfill(json=answer))
    show(page, "#/cluster")
    page.wait_for_selector("text=in doubt")
    there = "main a.name >> text=there:8080"
    assert page.get_attribute(there, "href") == "http://there:8080/console/#/cluster"
    brokers, owners, changes, moved = page.locator("main section.card").all_inner_texts()
    assert "leader" in brokers
    assert "90 %" in brokers
    assert "2 h ago" in owners
    assert "0x80000000_0xffffffff" in owners
    assert changes.index("nobody owned it") < changes.index(SCRIPT), "the newest first, as text"
    assert "there:8080 → here:8080" in moved
    assert "refused: not a super user" in moved
    page.fill("input[data-search]", "nobody owned")
    page.wait_for_selector("text=No bundle is like that.")
    assert SCRIPT not in page.inner_text("main")
    page.unroute_all()
    show(page, "#/cluster")
    page.wait_for_selector("text=This broker is alone")
    assert "Leader" not in page.inner_text(".tiles")
    assert "follows" not in page.inner_text(".tiles")


def test_what_settings_mean_is_text_with_code(page: Page) -> None:
    show(page, "#/settings")
    page.fill("main input[type=search]", "bindAddress")
    page.wait_for_selector("small.doc code >> text=127.0.0.1")
    assert "`" not in page.inner_text("small.doc >> nth=0")


def test_a_role_is_shown_what_it_may_see_and_do(browser: Browser, broker: BrokerThread) -> None:
    with SignedIn(browser, broker, "friend") as made:
        page = made.page
        page.wait_for_selector("text=public")
        assert page.locator("nav.menu a").all_inner_texts() == ["Tenants"]
        assert button(page, "Create tenant").count() == 0
        show(page, "#/namespace/public/default")
        page.wait_for_selector("main a.name")
        assert page.locator("main a.name").all_inner_texts() == ["orders"]
        show(page, f"#/topic/{ORDERS}")
        page.wait_for_selector("main a.name >> text=billing")
        for text in ("Send a message", "Delete", "More partitions"):
            assert button(page, text).count() == 0, text
        assert "Policies" not in page.inner_text("nav.tabs")
        show(page, "#/settings")
        page.wait_for_selector("text=You may not see this.")


def test_keys_go_everywhere(page: Page) -> None:
    show(page, "#/")
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_selector("input[data-search]")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.type") == "search"
    page.keyboard.type("nothing-like-it")
    page.wait_for_selector("text=Nothing has")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    assert page.locator("dialog button").all_inner_texts() == [
        "Close"
    ]  # there is nothing to cancel
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    page.keyboard.press("g")
    page.keyboard.press("b")
    page.wait_for_selector("h1 >> text=Cluster")
    page.keyboard.press("g")
    page.keyboard.press("c")
    page.wait_for_selector("h1 >> text=Settings")


CUT_LABELS = """
[...document.querySelectorAll('.plot .tick')].filter((label) => {
  const own = label.getBoundingClientRect(), card = label.closest('.card').getBoundingClientRect();
  const plot = label.closest('.plot'), box = plot.getBoundingClientRect();
  const isOut = own.left < box.left || own.right > box.right || own.top < box.top;
  const isHidden = isOut && getComputedStyle(plot).overflow !== 'visible';
  return isHidden || own.left < card.left || own.right > card.right;
}).map((label) => label.textContent)
"""
"""Labels of plots that are not seen as a whole."""


CUT_WORDS = """
[...document.querySelectorAll('.tile, .menu a[aria-current]')].filter((each) => {
  const seen = each.closest('.menu')?.getBoundingClientRect().right ?? innerWidth;
  return each.scrollWidth > each.clientWidth || each.getBoundingClientRect().right > seen + 1;
}).map((each) => each.textContent)
"""
"""Figures whose words do not fit into their frames, and the page's own name in the menu, if cut off."""


GROUND_OF_A_FINDING = """
(() => {
  const list = document.createElement("ul"), item = document.createElement("li");
  list.className = "findings";
  item.className = "notice";
  list.append(item);
  document.querySelector("main").append(list);
  const ground = getComputedStyle(item).backgroundColor;
  list.remove();
  return ground;
})()
"""
SCALES_WITH_EQUAL_LABELS = """
[...document.querySelectorAll('.plot')].filter((plot) => {
  const labels = [...plot.querySelectorAll(".tick[text-anchor='end']")].map((each) => each.textContent);
  return new Set(labels).size < labels.length;
}).length
"""


CUT_FIGURES = """
[...document.querySelectorAll('.tile')].filter((each) => each.scrollWidth > each.clientWidth)
  .map((each) => each.textContent)
"""
PARTED_LEGENDS = """
[...document.querySelectorAll('.hole-word')].filter((each) => each.getClientRects().length > 1).length
"""
"""Words of the holes' legend that stand on another line than their square."""


def test_figures_fit_into_their_frames_at_every_width(
    browser: Browser, broker: BrokerThread
) -> None:
    with SignedIn(browser, broker, "admin") as made:
        page = made.page
        for view in ("#/", f"#/topic/{ORDERS}", f"#/subscription/{ORDERS}/billing", "#/storage"):
            show(page, view)
            page.wait_for_selector(".tile")
            for width in range(1400, 320, -60):
                page.set_viewport_size({"width": width, "height": 800})
                assert page.evaluate(CUT_FIGURES) == [], (view, width)
        show(page, f"#/subscription/{ORDERS}/billing/holes")
        page.wait_for_selector(".hole-word")
        assert page.locator(".hole-word .hole-key").count() == 4
        assert page.evaluate(PARTED_LEGENDS) == 0


def edges(page: Page, row: str) -> tuple[bytes, bytes]:
    """Pictures of both ends of a row of links, above its words."""
    box = page.locator(row).bounding_box()
    assert box is not None
    frame = {"y": box["y"], "width": 4, "height": 3}
    left, right = {**frame, "x": box["x"] + 2}, {**frame, "x": box["x"] + box["width"] - 6}
    return page.screenshot(clip=left), page.screenshot(clip=right)


def test_rows_of_links_show_where_more_of_them_is(browser: Browser, broker: BrokerThread) -> None:
    with SignedIn(browser, broker, "admin", viewport={"width": 360, "height": 700}) as made:
        page = made.page
        show(page, f"#/topic/{ORDERS}/messages")
        for row in (".menu", ".tabs"):
            scroll = f"(place) => {{ document.querySelector('{row}').scrollLeft = place; }}"
            page.evaluate(scroll, 0)
            plain, marked = edges(page, row)
            assert plain != marked, row
            page.evaluate(scroll, 1000)
            left, right = edges(page, row)
            assert left != plain, row
            assert right == plain, row


def test_narrow_and_dark(browser: Browser, broker: BrokerThread) -> None:
    narrow = {"viewport": {"width": 360, "height": 700}, "color_scheme": "dark"}
    with SignedIn(browser, broker, "admin", **narrow) as made:
        page = made.page
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 20, 27)"
        for view in VIEWS:
            show(page, view)
            wide = page.evaluate("document.scrollingElement.scrollWidth - innerWidth")
            assert wide <= 0, (view, wide)
            assert page.evaluate(CUT_WORDS) == [], view
        show(page, "#/")
        page.wait_for_selector(".plot .tick")
        assert page.evaluate(CUT_LABELS) == []
        assert page.evaluate(SCALES_WITH_EQUAL_LABELS) == 0
        # A finding has its urgency as class, of which one is the name of what pops up in a corner.
        assert page.evaluate(GROUND_OF_A_FINDING) == "rgba(0, 0, 0, 0)"
        page.click("[title='Dark or light']")
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert light == "rgb(244, 246, 249)"


# --- pages of other sites ----------------------------------------------------------------------

ATTACK = """
async ([base, topic]) => {
  const found = {};
  const tried = async (name, act) => { try { found[name] = await act(); } catch (error) { found[name] = "refused"; } };
  const call = async (method, path, mode) => { const answer = await fetch(base + path, {method, mode}); return answer.type === "opaque" ? "opaque" : answer.status; };
  await tried("terminate", () => call("POST", topic + "/terminate", "no-cors"));
  await tried("create", () => call("PUT", topic + "-2", "cors"));
  await tried("read", () => call("GET", "/admin/v2/clusters", "cors"));
  await tried("console", () => call("GET", "/admin/console/me", "cors"));
  await tried("socket", () => new Promise((resolve) => {
    const socket = new WebSocket(base.replace("http", "ws") + "/ws/v2/producer/persistent/public/default/victim");
    socket.onopen = () => resolve("open");
    socket.onerror = () => resolve("refused");
  }));
  await tried("frame", () => new Promise((resolve) => {
    const frame = document.createElement("iframe");
    frame.src = base + "/console/";
    frame.onload = () => resolve(frame.contentDocument ? "readable" : "refused");
    document.body.append(frame);
  }));
  return found;
}
"""


class _Foreign(BaseHTTPRequestHandler):
    """A page of another site, with a form that is sent to the broker at once if it is asked for."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title><body>")

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def foreign() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Foreign)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://localhost:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_page_of_another_site_is_refused(browser: Browser, foreign: str) -> None:
    """`localhost` and `127.0.0.1` are two sites; the broker's own page may do all of it."""
    topic = "/admin/v2/persistent/public/default/victim"
    with BrokerThread() as broker, Client(broker.service_url) as client:
        producer = client.create_producer("victim")
        base = broker.web_service_url
        page = browser.new_page()
        page.set_default_timeout(MILLIS)
        page.goto(foreign)
        found = page.evaluate(ATTACK, [base, topic])
        assert found == {
            "terminate": "opaque",  # sent, and refused: the topic takes messages below
            "create": "refused",
            "read": "refused",
            "console": "refused",
            "socket": "refused",
            "frame": "refused",
        }
        page.evaluate(
            """address => { const form = document.createElement("form"); form.method = "POST";
            form.action = address; document.body.append(form); form.submit(); }""",
            base + topic + "/terminate",
        )
        page.wait_for_url(base + "/**")
        assert "Refused" in page.inner_text("body")
        producer.send(b"goes on")
        page.goto(base + "/console/")
        page.wait_for_selector("h1")
        own = page.evaluate(ATTACK, [base, topic])
        assert own["terminate"] == 200
        assert (own["create"], own["read"], own["console"]) == (204, 200, 200)
        assert own["socket"] in {"open", "refused"}  # the topic is terminated by now
        page.close()


def test_a_page_whose_name_came_to_resolve_to_the_broker_is_refused(browser: Browser) -> None:
    """DNS rebinding: for the browser they are one site, and only `Host` tells."""
    with BrokerThread() as broker, Client(broker.service_url) as client:
        producer = client.create_producer("victim")
        base = f"http://{REBOUND_HOST}:{urlsplit(broker.web_service_url).port}"
        page = browser.new_page()
        page.set_default_timeout(MILLIS)
        # The page came from its owner's machine, before the name was changed.
        page.route(
            f"{base}/page", lambda route: route.fulfill(body="<body>", content_type="text/html")
        )
        page.goto(f"{base}/page")
        found = page.evaluate(ATTACK, [base, "/admin/v2/persistent/public/default/victim"])
        assert found == {
            "terminate": 403,
            "create": 403,
            "read": 403,
            "console": 403,
            "socket": "refused",
            "frame": found["frame"],  # the text of the refusal, or nothing
        }
        assert page.goto(f"{base}/console/").status == 403
        assert "is no name of this broker" in page.inner_text("body")
        producer.send(b"goes on")
        page.close()
