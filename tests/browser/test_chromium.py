"""The browser that the page's tests stand on really shows text."""

from playwright.async_api import Page


async def test_the_browser_renders_text_and_runs_scripts(page: Page):
    await page.set_content("<h1>hi</h1><script>document.title = 1 + 1</script>")
    assert await page.inner_text("h1") == "hi"
    assert await page.title() == "2"
    width = await page.evaluate("document.querySelector('h1').getBoundingClientRect().height")
    assert width > 10
