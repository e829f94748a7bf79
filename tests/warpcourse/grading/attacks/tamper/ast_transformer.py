# tries: removes assertions from every cell before IPython runs it
# expects: graded 0 0 0 0
# stock: 1 2 1
import ast


class NoAssertions(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.copy_location(ast.Pass(), node)

    def visit_Expr(self, node):
        called = isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name)
        if called and node.value.func.id.startswith("assert"):
            return ast.copy_location(ast.Pass(), node)
        return node


get_ipython().ast_transformers.append(NoAssertions())
