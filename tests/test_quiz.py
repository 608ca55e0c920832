"""The quiz: its form, its score, and the figures in its feedback, worked out by hand here."""

import re

import pytest

from s11.learn_scenes import SCENES
from s11.quiz import TOUR, Answer, PageLink, Question, Score
from s11.quiz_questions import questions

NAMES = ("starvation", "sight", "positions", "metrics", "size", "no-help")


def question(name):
    return next(each for each in questions() if each.name == name)


def feedback(name, number):
    return question(name).answers[number - 1].feedback


def test_six_questions_in_order_each_with_its_scene():
    assert tuple(each.name for each in questions()) == NAMES
    # Divisible prefill; the mask; absolute positions; stall-free steps; the size; the cost.
    assert [each.scene for each in questions()] == [3, 8, 9, 4, 7, 5]
    assert question("size").scene_link.address == "./learn?scene=7"
    assert question("size").scene_link.label.endswith("The target picks the chunk size")


def test_the_tours_names_are_its_registrys():
    assert {number: scene.headline for number, scene in enumerate(SCENES, start=1)} == TOUR


def test_the_right_answer_is_given_away_by_nothing_but_what_it_says():
    places = [[a.right for a in each.answers].index(True) for each in questions()]
    assert set(places) == {0, 1, 2, 3}
    longest = [
        max(each.answers, key=lambda a: len(a.text)) is each.right_answer for each in questions()
    ]
    assert sum(longest) <= 2
    for each in questions():
        lengths = [len(answer.text) for answer in each.answers]
        assert max(lengths) < 2 * min(lengths), each.name


@pytest.mark.parametrize("name", NAMES)
def test_every_feedback_has_a_figure_and_says_something_else(name):
    told = [answer.feedback for answer in question(name).answers]
    assert len(set(told)) == 4
    for text in told:
        assert re.search(r"\d", text), text
        assert "None" not in text
        assert "nan" not in text


def test_starvation_figures():
    # Beside 24 decodes 8,192 - 24 = 8,168 tokens are left: 32,768 / 8,168 = 4.01, so 5 steps of
    # 4 + 0.05 * 24 = 5.2 ms each and 0.018 * 32,768 = 589.824 ms of prefill: 615.824 ms. The 512
    # tokens behind fit in the fifth step, 0.018 * 512 = 9.216 ms more, for both: 625.04 ms.
    right = feedback("starvation", 3)
    assert "8,168 tokens are left" in right
    assert "5 steps, first token after 616 ms" in right
    assert "with one request behind it, 2 wait for ever" in right
    assert feedback("starvation", 2).count("625 ms") == 2
    assert "590 ms of prefill" in feedback("starvation", 1)
    assert "8,192 tokens, of which 24 are decodes" in feedback("starvation", 4)


def test_sight_figures():
    # 27 - 24 + 1 = 4 keys of the chunk, 24 + 4 = 28 in all, 31 - 27 = 4 too many;
    # 8 * 24 + 8 * 9 / 2 = 228 pairs of 8 * 32.
    assert "4 of 28 keys, and the 24 in the cache are lost" in feedback("sight", 1)
    assert "28 keys: all 24 in the cache and 4 of its chunk" in feedback("sight", 2)
    assert "228 of 256 query-key pairs" in feedback("sight", 2)
    assert "Keys 28 to 31 belong to tokens after it: 4 too many" in feedback("sight", 3)


def test_position_figures():
    # Chunks of 100, 100 and 56: all from position 100 on are turned wrongly, 256 - 100 = 156.
    assert "100 apart and become numbers 50 and 50: distance 0" in feedback("positions", 1)
    for number in (1, 2, 3):
        assert "156 of 256" in feedback("positions", number)
    assert "from position 100 on" in feedback("positions", 3)
    assert "0 of 256 keys differ" in feedback("positions", 4)
    assert "2 seams" in feedback("positions", 2)


def test_metric_figures():
    # 4 + 0.018 * 32,768 + 1.2 = 595.024 ms in one step; 32 chunks of 1,024 take 23.632 ms each,
    # 756.224 ms together. 1,000 steps of 5.2 ms and 589.824 ms of prefill: 5.79 ms on average,
    # 24 * 1,000 decode tokens in 5,789.824 ms, with chunking and without.
    right = feedback("metrics", 1)
    assert "from 595 ms to 23.6 ms, 25× less" in right
    assert "5.8 ms before and 5.8 ms after" in right
    assert "weighs 0.6 ms in it" in feedback("metrics", 2)
    assert "4,145 tokens/s before and 4,145 after" in feedback("metrics", 3)
    assert "from 595 ms to 756 ms" in feedback("metrics", 4)
    assert "the last of its 32 chunks" in feedback("metrics", 4)


def test_size_figures():
    # (25 - 5.2) / 0.018 = 1,100 and (50 - 5.2) / 0.018 = 2,488.9, whatever the prompt.
    assert "2,488 tokens for a prompt of 8,192 and 2,488 for one of 131,072" in feedback("size", 1)
    assert "allow 1,100 and 2,488 tokens" in feedback("size", 2)
    # 128 steps of 5.2 ms and 8 of 5.2 ms, each beside 0.018 * 8,192 = 147.456 ms: 813.056, 189.056.
    assert "813 ms instead of 189 ms: the fixed cost 128 times" in feedback("size", 4)
    assert "6.4 ms and chunks of 1,024 for 23.6 ms" in feedback("size", 4)


def test_no_help_figures():
    # 8,192 tokens: 152.656 / 23.632 = 6.46. 256 streams: 4 + 12.8 + 589.824 = 606.624 ms whole,
    # 16.8 + 18.432 = 35.232 ms in chunks. Nobody: 593.824 ms, and 32 * 4 + 589.824 = 717.824.
    assert "25× less; at 8,192 tokens 6.5× less" in feedback("no-help", 1)
    assert "607 ms become 35.2 ms, 17× less" in feedback("no-help", 2)
    assert "after 718 ms instead of 594 ms" in feedback("no-help", 3)


def test_score_counts_first_attempts():
    asked = questions()[:3]
    right = {each.name: each.right_answer.text for each in asked}
    wrong = next(a.text for a in asked[0].answers if not a.right)
    none = Score.of(asked, {})
    assert (none.answered, none.right, none.finished) == (0, 0, False)
    assert none.sentence == "None of the 3 questions is answered yet."
    part = Score.of(asked, {asked[0].name: wrong, asked[2].name: right[asked[2].name]})
    assert part.firsts == (False, None, True)
    assert part.sentence == "2 of 3 answered, 1 of them right at the first attempt."
    done = Score.of(asked, right | {asked[0].name: wrong, "other": "x", asked[1].name: "no such"})
    assert done.firsts == (False, None, True)
    assert Score.of(asked, right).sentence == "All 3 answered: 3 of 3 right at the first attempt."


def test_a_question_is_well_formed_or_refused():
    answers = [Answer(str(number), "1") for number in range(4)]
    right = Answer("yes", "1", right=True)
    for wrong in (answers, [right, *answers[:2]], [right, Answer("no", "1", right=True)]):
        with pytest.raises(ValueError, match=r"answers: q has not"):
            Question(name="q", title="", asked="", answers=tuple(wrong), scene=1, shown_by=())


def test_a_link_escapes_what_it_carries():
    link = PageLink("a", "chunk_size", (("gpu", "L40S & more"), ("tp", "1")))
    assert link.address == "./chunk_size?gpu=L40S+%26+more&tp=1"
    assert PageLink("home", "").address == "./"
