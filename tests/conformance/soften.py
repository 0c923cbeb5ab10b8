"""Rewrites the tests of other servers so that an assertion records whether it holds, and the test continues."""

import ast


class _Softener(ast.NodeTransformer):
    def visit_Assert(self, node):
        text = ast.unparse(node.test)[:300]
        attempt = ast.parse(f"""
try:
    _redline_true = bool(_)
except Exception as _redline_error:
    _redline_soft.note(False, {text!r} + f' ({{type(_redline_error).__name__}}: {{_redline_error}})'[:300])
else:
    _redline_soft.note(_redline_true, {text!r})
""").body[0]
        attempt.body[0].value.args = [node.test]
        return ast.copy_location(attempt, node)


def rewrite(source):
    tree = _Softener().visit(ast.parse(source))
    at = next((i for i, line in enumerate(tree.body)
               if not (isinstance(line, ast.ImportFrom) and line.module == "__future__")
               and not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))), 0)
    tree.body.insert(at, ast.parse("import soft_asserts as _redline_soft").body[0])
    return ast.unparse(ast.fix_missing_locations(tree))
