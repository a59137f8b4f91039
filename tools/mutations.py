"""What a mutant is: one node of a module's syntax tree replaced by another.  Texts, types and decorators are left alone."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

OPERATORS: dict[type[ast.AST], list[type[ast.AST]]] = {
    ast.Add: [ast.Sub], ast.Sub: [ast.Add], ast.Mult: [ast.Div], ast.Div: [ast.Mult], ast.Pow: [ast.Mult],
    ast.FloorDiv: [ast.Mult], ast.Mod: [ast.Mult], ast.LShift: [ast.RShift], ast.BitAnd: [ast.BitOr], ast.BitOr: [ast.BitAnd],
    ast.Lt: [ast.LtE, ast.GtE], ast.LtE: [ast.Lt, ast.Gt], ast.Gt: [ast.GtE, ast.LtE], ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq], ast.Is: [ast.IsNot], ast.IsNot: [ast.Is], ast.In: [ast.NotIn],
    ast.NotIn: [ast.In], ast.And: [ast.Or], ast.Or: [ast.And],
}  # fmt: skip
PAIRS = (
    "min max, amin amax, minimum maximum, argmin argmax, any all, log log1p, exp expm1, floor ceil, sum mean, std var"
)
NAMES = {a: b for pair in PAIRS.split(", ") for a, b in (pair.split(), pair.split()[::-1])}
WORDS = {"mean": "max", "mfold": "mean", "max": "mean", "cgf": "paper", "paper": "cgf"}


class Mutant(NamedTuple):
    """One change: its name, which stays while its function does, its line, and the module compiled with it."""

    module: str
    name: str
    line: int
    code: CodeType


def replacements(node: ast.AST) -> Iterator[ast.AST]:
    """What a node is replaced by, one after the other."""
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            yield left
            if isinstance(op, ast.Add | ast.Sub | ast.Mult):
                yield right
        case ast.BoolOp(op=op, values=values):
            for i in range(len(values)):
                rest = values[:i] + values[i + 1 :]
                yield ast.BoolOp(op, rest) if len(rest) > 1 else rest[0]
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(number)):
            yield from (ast.Constant(number + 1), ast.Constant(number - 1))
        case ast.Constant(value=float(number)):
            yield from (ast.Constant(number * 2 if number else 1.0), ast.Constant(number / 2 if number else -1.0))
        case ast.Constant(value=str(word)) if word in WORDS:
            yield ast.Constant(WORDS[word])
        case ast.Name(id=name, ctx=ast.Load()) if name in NAMES:
            yield ast.Name(NAMES[name], ast.Load())
        case ast.Attribute(value=value, attr=name, ctx=ast.Load()) if name in NAMES:
            yield ast.Attribute(value, NAMES[name], ast.Load())
        case ast.Slice(lower=lower, upper=upper, step=step):
            yield from [ast.Slice(None, upper, step)] * bool(lower) + [ast.Slice(lower, None, step)] * bool(upper)
        case ast.Dict(keys=keys, values=values):
            for i in [i for i, value in enumerate(values) if not isinstance(value, ast.Constant)]:
                yield ast.Dict(keys, [*values[:i], ast.Constant(0.0), *values[i + 1 :]])
        case ast.If() | ast.IfExp() if isinstance(node.test, ast.Name | ast.Attribute | ast.Call):
            yield type(node)(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)  # type: ignore[arg-type]
        case ast.Return(value=value) if not isinstance(value, ast.Constant | None):
            yield ast.Return(ast.Constant(None))
        case ast.AugAssign(target=target, value=value):
            yield ast.Assign([target], value)
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.operator() | ast.cmpop() | ast.boolop():
            yield from (other() for other in OPERATORS.get(type(node), []))


def is_skipped(node: ast.AST, field: str) -> bool:
    """True for types, decorators, messages, and the `strict` of a `zip`, which is an assertion."""
    literal = isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal"
    typing = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    strict = isinstance(node, ast.keyword) and node.arg == "strict"
    text = isinstance(node, ast.Raise | ast.JoinedStr)
    return literal or typing or strict or text or field in ("annotation", "returns", "decorator_list")


def places(node: ast.AST, where: str = "", shown: Any = None) -> Iterator[tuple[str, ast.AST, Any, Any]]:
    """Each node's function, the code around it that is shown, and where it hangs: a list or the fields of its parent."""
    for field, value in ast.iter_fields(node):
        holder: Any = value if isinstance(value, list) else vars(node)
        keys: Any = range(len(value)) if isinstance(value, list) else [field]
        for key in keys:
            child = holder[key]
            if not isinstance(child, ast.AST) or is_skipped(child, field):
                continue
            own = f"{where}.{child.name}".strip(".") if isinstance(child, ast.FunctionDef | ast.ClassDef) else where
            large = isinstance(child, ast.stmt | ast.expr) and not isinstance(
                child, ast.Constant | ast.Name | ast.Slice
            )
            around = child if large or shown is None else shown
            yield own, around, holder, key
            yield from places(child, own, around)


def described(before: str, after: str) -> str:
    """The change with a little of what is around it."""
    start = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    pairs = zip(before[start:][::-1], after[start:][::-1], strict=False)
    end = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(before), len(after)) - start)
    cut = [re.sub(r"\s+", " ", text[max(0, start - 24) : len(text) - max(0, end - 24)]) for text in (before, after)]
    return " → ".join(text if len(text) < 80 else f"{text[:40]} … {text[-36:]}" for text in cut)


def mutants(source: Path, module: str, parts: tuple[str, ...] = ()) -> list[Mutant]:
    """All mutants of a module, or of some of its functions, compiled."""
    path, seen, out = source / module, Counter[str](), []
    tree = ast.parse(path.read_text())
    for where, around, holder, key in places(tree):
        if parts and where not in parts:
            continue
        node, before = holder[key], ast.unparse(around)
        for new in replacements(node):
            holder[key] = new
            code = compile(ast.fix_missing_locations(tree), str(path), "exec")
            after = ast.unparse(new if around is node else around)
            holder[key] = node
            name = f"{module} {where or 'constants'}: {described(before, after)}"
            seen[name] += 1
            name += f" ({seen[name]})" * (seen[name] > 1)
            out.append(Mutant(module, name, getattr(around, "lineno", 0), code))
    return out
