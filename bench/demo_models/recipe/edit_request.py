"""What a kind of edit works with: the file, the voice of the user, and the registry of kinds."""
import python_source
from wordings import Voice

KINDS = {}  # the weight of each kind when one is drawn; kinds that fit any file have a smaller weight
FUNCTIONS = {}
UNCHANGED = set()  # the kinds that ask for something that is not there, so the file stays as it is


def kind(weight, unchanged=False):
    """Registers a function (ask) -> (Said, new text), or (Said, None) for the old text, as a kind of edit."""

    def register(function):
        KINDS[function.__name__] = weight
        FUNCTIONS[function.__name__] = function
        if unchanged:
            UNCHANGED.add(function.__name__)
        return function

    return register


class Request(Voice):
    """What a user asks for in a file. Several edits with one instruction share a request, the file changes."""

    def __init__(self, random, source, name_pool):
        super().__init__(random)
        self.source, self.name_pool = source, name_pool

    def drawn_function(self, lines_max=60):
        """Returns a function that can be referred to by its name, its parent, and words for it."""
        function, parent, owner = python_source.a_function(self.random, self.source, lines_max)
        return function, parent, self.function(function, owner)

    def function_around(self, node):
        """Returns the innermost function around a node, whose name no other function of the file has, and words for it."""
        holders = [(f, o) for f, _, o in self.source.functions() if f.lineno <= node.lineno <= f.end_lineno]
        python_source.require(holders)
        function, owner = holders[-1]
        python_source.require(self.source.is_only(function))
        return function, self.function(function, owner) if self.chance(0.4) else self.name(function.name)

    def choice(self, items):
        return python_source.pick(self.random, items)

    def chance(self, share):
        return self.random.random() < share
