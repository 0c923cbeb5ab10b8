from utils import *


def test_all_is_well():
    response = make_request()
    assert response.status == 200
    assert response.body["content"] == "a", "with a message"


def test_two_of_four_assertions_fail():
    response = make_request()
    assert response.status == 400
    assert response.body["tokens"] == [1]
    assert response.body["no such member"] == 1
    assert len(response.body) == 2


def test_breaks():
    raise RuntimeError("without a word")
