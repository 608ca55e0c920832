"""The quiz page without a browser: answers, score, page switches, links good and hostile."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from s11.quiz_questions import questions
from s11.ui import chunk_size_state, mask_controls, simulator_state
from s11.ui.quiz_panels import score_html
from s11.ui.quiz_state import LINK_CHECKS, VIEWS, score

ROOT = Path(__file__).resolve().parents[2]
CHECKS = {
    "": simulator_state.LINK_CHECKS,
    "mask": mask_controls.LINK_CHECKS,
    "chunk_size": chunk_size_state.LINK_CHECKS,
}
FIRST = questions()[0]
WRONG = next(answer for answer in FIRST.answers if not answer.right)


@pytest.fixture
def page():
    def open_page(**parameters):
        app = AppTest.from_file(str(ROOT / "pages" / "check_yourself.py"), default_timeout=60)
        for name, value in parameters.items():
            app.query_params[name] = value
        return app.run()

    return open_page


def radio(app, question):
    return next(each for each in app.radio if each.label == question.asked)


def give(app, question, answer):
    radio(app, question).set_value(answer.text)
    return app.button(key=f"check_{question.name}").click().run()


def told(app):
    (html,) = [
        b.proto.body for b in app.get("html") if "quiz-score'" in b.proto.body.replace('"', "'")
    ]
    return html


def links(app):
    return [b.proto.body for b in app.get("html") if "<nav" in b.proto.body]


def test_arrives_with_every_question_asked_and_nothing_chosen(page):
    app = page()
    assert not app.exception
    assert [each.label for each in app.radio] == [each.asked for each in questions()]
    for each, question in zip(app.radio, questions(), strict=True):
        assert each.value is None
        assert each.options == [answer.text for answer in question.answers]
    assert not app.success
    assert not app.error
    assert links(app) == []
    assert app.button(key="check_starvation").label == "Check answer 1"
    assert "None of the 6 questions is answered yet." in told(app)
    assert 'role="status"' in told(app)


def test_each_answer_gets_its_own_feedback_and_the_first_counts(page):
    app = give(page(), FIRST, WRONG)
    assert WRONG.feedback in app.error[0].value
    assert not app.success
    assert "1 of 6 answered, 0 of them right" in told(app)
    assert FIRST.scene_link.address.replace("&", "&amp;") in links(app)[0]
    assert links(app)[0].count('target="_blank"') == 3
    app = give(app, FIRST, FIRST.right_answer)
    assert FIRST.right_answer.feedback in app.success[0].value
    assert "first attempt counts" in app.success[0].value
    assert not app.error
    assert "1 of 6 answered, 0 of them right" in told(app)
    assert [each.value for each in app.radio][1:] == [None] * 5


def test_a_check_without_an_answer_asks_for_one(page):
    app = page()
    app.button(key="check_sight").click().run()
    assert app.warning[0].value == "Choose one of the four answers first."
    assert "None of the 6" in told(app)


def test_all_answered_then_start_again(page):
    app = page()
    for question in questions():
        wrong = next(answer for answer in question.answers if not answer.right)
        app = give(app, question, wrong if question is FIRST else question.right_answer)
    assert "All 6 answered: 5 of 6 right at the first attempt." in told(app)
    again = [html for html in links(app) if "Worth another look" in html]
    assert len(again) == 1
    assert again[0].count("learn?scene=") == 1
    assert "learn?scene=3" in again[0]
    start = next(button for button in app.button if button.label == "Start again")
    start.click().run()
    assert "None of the 6" in told(app)
    assert [each.value for each in app.radio] == [None] * 6
    assert not app.success
    assert not app.error


def test_score_survives_other_pages_and_the_choice_of_one_question(page):
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    app.switch_page("pages/check_yourself.py").run()
    app = give(app, FIRST, FIRST.right_answer)
    app.switch_page("pages/simulator.py").run()
    assert not app.radio
    app.switch_page("pages/check_yourself.py").run()
    assert not app.exception
    assert "1 of 6 answered, 1 of them right" in told(app)
    assert radio(app, FIRST).value == FIRST.right_answer.text
    assert FIRST.right_answer.feedback in app.success[0].value


def test_one_question_by_link(page):
    app = page(question="5")
    assert not app.info
    assert [each.label for each in app.radio] == [questions()[4].asked]
    assert VIEWS[1:] == tuple(str(number + 1) for number in range(len(questions())))


@pytest.mark.parametrize("value", ["0", "1e400", "x" * 500])
def test_hostile_link_gives_a_note_and_all_questions(page, value):
    app = page(question=value, other="1")
    assert not app.exception
    assert "question:" in app.info[0].value
    assert "other: this page has no such setting" in app.info[0].value
    assert len(app.radio) == 6


def test_every_link_is_one_that_its_page_takes():
    assert set(LINK_CHECKS) == {"question"}
    for question in questions():
        assert question.shown_by
        for link in question.shown_by:
            for name, text in link.parameters:
                CHECKS[link.page][name](text)


def test_score_says_in_words_what_it_shows_in_colours():
    html = score_html(score(), questions())
    assert html.count("<li") == 6
    assert html.count("open</li>") == 6
