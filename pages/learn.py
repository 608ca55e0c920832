"""Learn: the chapter as a guided tour, one claim and one live picture at a time."""

from s11.ui.frame import begin_page, show_link_notes
from s11.ui.learn_panels import learn_page
from s11.ui.learn_state import LINK_CHECKS

begin_page()
show_link_notes("learn", LINK_CHECKS)
learn_page()
