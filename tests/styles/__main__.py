"""Write the style sheet of the pages anew: ``make styles``."""

from tests.styles.used_tabler import USED, used_tabler

USED.write_text(used_tabler())
