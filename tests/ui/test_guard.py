"""What a visitor sees where a page of ours fails."""

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

SECRET = "/srv/secret/path.csv"


@pytest.fixture(autouse=True)
def hosting_forces_its_own_option():
    """Streamlit Community Cloud forces False, with which a trace is shown."""
    before = st.get_option("client.showErrorDetails")
    st.set_option("client.showErrorDetails", "false")
    yield
    st.set_option("client.showErrorDetails", before)


def broken_page():
    import streamlit as st

    from s11.ui.guard import hide_error_details, run_guarded

    def broken():
        st.title("Here")
        raise RuntimeError("/srv/secret/path.csv")

    hide_error_details()
    run_guarded(st.navigation([st.Page(broken, title="Broken")]))
    st.caption("The frame goes on")


def broken_inside():
    import streamlit as st

    from s11.ui.guard import hide_error_details

    def fail():
        raise RuntimeError("/srv/secret/path.csv")

    @st.fragment
    def part():
        if st.toggle("break"):
            fail()

    hide_error_details()
    st.button("press", on_click=fail)
    part()


def test_a_page_that_fails_says_so_and_the_frame_stands(caplog: pytest.LogCaptureFixture):
    app = AppTest.from_function(broken_page).run()
    assert not app.exception
    assert [error.value[:36] for error in app.error] == ["This page could not be finished: som"]
    assert "[Open it anew with its defaults](./" in app.error[0].value
    assert [title.value for title in app.title] == ["Here"]
    assert [caption.value for caption in app.caption] == ["The frame goes on"]
    assert SECRET not in str(app.main)
    assert SECRET in caplog.text  # for whoever runs the server
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("kind", ["button", "toggle"])
def test_a_callback_or_a_fragment_that_fails_tells_nothing_either(kind: str):
    app = AppTest.from_function(broken_inside).run()
    assert not app.exception
    widget = app.button[0].click() if kind == "button" else app.toggle[0].set_value(True)
    widget.run()
    (shown,) = app.exception
    assert SECRET not in str(shown.proto)
    assert "RuntimeError" not in str(shown.proto)
    assert not shown.proto.stack_trace


def test_notes_about_a_link_stay_with_its_page():
    def pages():
        import streamlit as st

        from s11.ui.frame import show_link_notes

        page = st.session_state.get("page", "one")
        show_link_notes(page, {})

    app = AppTest.from_function(pages)
    for number in range(900):
        app.query_params[f"name{number}"] = "x" * 100
    app.run()
    assert len(app.info) == 1
    assert app.info[0].value.count("\n- ") == 6
    assert app.query_params == {}
    app.run()
    assert len(app.info) == 1  # still the same page
    app.session_state["page"] = "two"
    assert not app.run().info
    app.session_state["page"] = "one"
    assert not app.run().info
