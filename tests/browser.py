"""Options of the browser that tests start."""

# It ends a hang, and is no claim. Playwright waits 5 s for what is expected of a page. That is too
# short for a run on real workers where the machine is busy.
PATIENCE_MILLISECONDS = 120_000
# Nothing of the browser's own is to be looked up or downloaded.
QUIET = [
    *["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
    *["--disable-background-networking", "--disable-component-update", "--disable-sync"],
]
