"""What the public headers declare and the library has to define, as libclang reads them.

A program needs of the library only what no header defines: functions that are not inline, variables, and the
tables and type information of classes whose first virtual function is such a function. Templates, inline
functions and other classes' tables are compiled into the program itself.
"""

import ctypes
import dataclasses
import pathlib
import sys

# Where Debian puts python3-clang, for a Python that is not Debian's.
sys.path.append("/usr/lib/python3/dist-packages")
try:
    from clang import cindex
except ImportError:
    cindex = None

NOT_HERE = 77  # exit status with which ctest skips a test


@dataclasses.dataclass(frozen=True, order=True)
class Symbol:
    name: str  # as the compiler mangles it
    header: str  # where it is declared, from the repository's root
    pointer: str = ""  # declaration in C++ of a pointer {} to it; a function's `this` is its first argument


@dataclasses.dataclass
class Declared:
    symbols: list  # of Symbol
    types: list  # names of classes and enumerations, of which a program may know the layout


def public_headers(root):
    """Those of include/headers.txt that programs include; .inc files are parts of others, .cuh of GPU code."""
    lines = (pathlib.Path(root) / "include/headers.txt").read_text().splitlines()
    return [line for line in lines if line.endswith(".h") and not line.startswith("#")]


def text_of_headers(root):
    """A source that includes all of them."""
    return "".join(f'#include "{header}"\n' for header in public_headers(root))


def read(root):
    """Declared of the headers under `root`. Ends the program where libclang is missing or refuses the headers."""
    if cindex is None:
        sys.exit("python3-clang is missing: install it to read the public headers")
    root = pathlib.Path(root).resolve()
    shim = pathlib.Path(__file__).resolve().parent.parent / "source_location_shim.h"
    options = ["-x", "c++", "-std=c++20", "-march=x86-64-v3", f"-I{root}", f"-I{root}/include", "-include", str(shim)]
    source = str(root / "every_public_header.cc")
    unit = cindex.Index.create().parse(source, options, [(source, text_of_headers(root))])
    errors = [str(message) for message in unit.diagnostics if message.severity >= message.Error]
    if errors:
        sys.exit("the public headers do not compile:\n" + "\n".join(errors[:20]))
    reader = _Reader(root)
    for cursor in unit.cursor.get_children():
        if cursor.kind.name == "NAMESPACE" and cursor.spelling == "lockstep":
            reader.visit(cursor)
    return Declared(sorted(reader.symbols.values()), sorted(reader.types))


# Names of libclang's kinds of cursors.
_CLASSES = {"CLASS_DECL", "STRUCT_DECL", "UNION_DECL"}
_SCOPES = _CLASSES | {"NAMESPACE", "FRIEND_DECL", "LINKAGE_SPEC"}
_FUNCTIONS = {"FUNCTION_DECL", "CXX_METHOD", "CONSTRUCTOR", "DESTRUCTOR", "CONVERSION_FUNCTION"}


class _Reader:
    def __init__(self, root):
        self.root = root
        self.symbols = {}
        self.types = set()

    def visit(self, scope):
        for cursor in scope.get_children():
            kind = cursor.kind.name
            if kind in _FUNCTIONS:
                if _is_elsewhere(cursor):
                    for name in _manglings(cursor):
                        self.add(name, cursor, _pointer(cursor))
            elif kind == "VAR_DECL":
                if cursor.linkage.name == "EXTERNAL" and cursor.get_definition() is None:
                    self.add(cursor.mangled_name, cursor, f"decltype({_qualified(cursor)})* {{}}")
            elif kind == "ENUM_DECL":
                self.add_type(cursor)
            if kind in _CLASSES and cursor.is_definition():
                self.add_type(cursor)
                if _has_its_table_elsewhere(cursor):
                    for prefix in ("_ZTI", "_ZTS", "_ZTV"):
                        self.add(prefix + _mangled_type(cursor), cursor, "const void* {}")
            if kind in _SCOPES:
                self.visit(cursor)

    def add(self, name, cursor, pointer):
        header = pathlib.Path(cursor.location.file.name).resolve().relative_to(self.root)
        self.symbols.setdefault(name, Symbol(name, str(header), pointer))

    def add_type(self, cursor):
        name = cursor.type.get_canonical().spelling
        # The name of an unnamed one is a place; a specialisation's has its arguments as they were written.
        if "(" not in name and "<" not in name:
            self.types.add(name)


def _is_elsewhere(function):
    """No header defines the function, and it is not one that nobody defines."""
    return (function.linkage.name == "EXTERNAL" and function.availability.name != "NOT_AVAILABLE"
            and function.get_definition() is None and not _is_inline(function)
            and not (function.is_pure_virtual_method() and function.kind.name != "DESTRUCTOR"))


def _is_inline(function):
    """Also of functions that the compiler defines, `= default`."""
    asked = cindex.conf.lib.clang_Cursor_isFunctionInlined
    asked.argtypes, asked.restype = [cindex.Cursor], ctypes.c_uint
    return bool(asked(function)) or function.is_default_method()


def _has_its_table_elsewhere(record):
    """The class's key function, the first virtual one that is neither inline nor pure, is in the library."""
    for member in record.get_children():
        if member.kind.name in _FUNCTIONS and member.is_virtual_method() and not member.is_pure_virtual_method():
            if _is_elsewhere(member):
                return True
    return False


def _scopes(cursor):
    """Names of a declaration and of what it stands in, outermost first."""
    names = []
    while cursor.kind.name != "TRANSLATION_UNIT":
        if cursor.kind.name != "LINKAGE_SPEC":
            names.insert(0, cursor.spelling)
        cursor = cursor.semantic_parent
    return names


def _qualified(cursor):
    return "::".join(_scopes(cursor))


def _mangled_type(record):
    return "N" + "".join(f"{len(name)}{name}" for name in _scopes(record)) + "E"


class _Strings(ctypes.Structure):
    _fields_ = [("strings", ctypes.c_void_p), ("count", ctypes.c_uint)]


def _manglings(function):
    """All symbols of a function: constructors and destructors have one for each use, virtual functions one for
    each base through which they are called."""
    if function.kind.name in ("FUNCTION_DECL", "CONVERSION_FUNCTION"):
        return [function.mangled_name]
    library = cindex.conf.lib
    every = library.clang_Cursor_getCXXManglings
    every.argtypes, every.restype = [cindex.Cursor], ctypes.POINTER(_Strings)
    found = every(function)
    strings = ctypes.cast(found.contents.strings, ctypes.POINTER(cindex._CXString))
    names = [library.clang_getCString(strings[i]) for i in range(found.contents.count)]
    return [name.decode() if isinstance(name, bytes) else name for name in names]


def _pointer(function):
    arguments = [argument.type.get_canonical().spelling for argument in function.get_arguments()]
    if function.kind.name != "FUNCTION_DECL" and not function.is_static_method():
        const = "const " if function.is_const_method() else ""
        arguments.insert(0, f"{const}{function.semantic_parent.type.get_canonical().spelling}*")
    return f"auto (*{{}})({', '.join(arguments)}) -> {function.result_type.get_canonical().spelling}"
