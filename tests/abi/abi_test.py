#!/usr/bin/env python3
"""What cmake/abi reads out of headers and libraries, and which changes it finds.

abi_test.py CASE: Reading or Comparing, which need libclang and abidiff, or Exporting.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "cmake/abi"))
import declared  # noqa: E402

HEADER = """\
#pragma once
namespace lockstep {
int added(int a, int b);
struct Size { int width; int height; };
enum class Kind { kOne, kTwo };
class Shape {
 public:
  virtual ~Shape();
  virtual Size size() const;
  Kind kind() const;
};
}  // namespace lockstep
"""


class Tree:
    """A repository with one public header, until the test `of` ends."""

    def __init__(self, of, header, version="0.1.0"):
        folder = tempfile.TemporaryDirectory()
        of.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("include/lockstep", "cmake/abi"):
            (self.root / name).mkdir(parents=True)
        (self.root / "include/headers.txt").write_text("# the only one\na.h\n")
        (self.root / "include/lockstep/lockstep.h").write_text('#include "a.h"\n')
        self.change(header, version)

    def change(self, header, version="0.1.0"):
        (self.root / "a.h").write_text(header)
        (self.root / "CMakeLists.txt").write_text(f"project(Lockstep VERSION {version} LANGUAGES CXX\n")

    def run(self, *arguments):
        """Exit status and output of cmake/abi/abi in this tree."""
        ended = subprocess.run([sys.executable, ROOT / "cmake/abi/abi", "--root", self.root, *arguments],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return ended.returncode, ended.stdout


class Reading(unittest.TestCase):
    def names(self, body):
        tree = Tree(self, f"namespace lockstep {{\n{body}\n}}\n")
        return {symbol.name for symbol in declared.read(tree.root).symbols}

    def test_functions_that_no_header_defines_are_symbols(self):
        self.assertEqual(self.names("void f(int); namespace nn { extern int g; }"),
                         {"_ZN8lockstep1fEi", "_ZN8lockstep2nn1gE"})

    def test_what_programs_compile_themselves_is_no_symbol(self):
        self.assertEqual(self.names("""
            inline int f() { return 1; }
            static int g();
            template <class T> T h(T);
            inline thread_local int i = 0;
            struct B { int b; friend bool operator==(const B&, const B&) = default; };
            struct A { A() = default; A(const A&) = delete; void f() {} virtual void g() = 0; inline void h(); };
            void A::h() {}"""), set())

    def test_constructors_have_a_symbol_for_each_use(self):
        self.assertEqual(self.names("struct A { explicit A(int); ~A(); };"),
                         {"_ZN8lockstep1AC1Ei", "_ZN8lockstep1AC2Ei", "_ZN8lockstep1AD1Ev", "_ZN8lockstep1AD2Ev"})

    def test_a_class_whose_key_function_is_in_the_library_has_its_tables_there(self):
        self.assertEqual(self.names("struct A { virtual void f() {} virtual void g(); };"),
                         {"_ZN8lockstep1A1gEv", "_ZTIN8lockstep1AE", "_ZTSN8lockstep1AE", "_ZTVN8lockstep1AE"})

    def test_functions_of_other_bases_are_called_through_thunks(self):
        self.assertIn("_ZThn8_N8lockstep1C1gEv", self.names("""
            struct A { virtual void f(); };
            struct B { virtual void g(); };
            struct C : A, B { void g() override; };"""))

    def test_a_list_that_lacks_a_function_or_names_one_too_many_fails(self):
        tree = Tree(self, HEADER)
        self.assertEqual(tree.run("symbols")[0], 0)
        self.assertEqual(tree.run("symbols", "--check")[0], 0)
        tree.change(HEADER.replace("added(int", "sum(int"))
        status, output = tree.run("symbols", "--check")
        self.assertEqual(status, 1)
        self.assertIn("lockstep::sum(int, int)", output)
        tree.change(HEADER.replace("int added(int a, int b);", ""))
        status, output = tree.run("symbols", "--check")
        self.assertEqual(status, 1)
        self.assertIn("lockstep::added(int, int)", output)


class Exporting(unittest.TestCase):
    MAP = "LOCKSTEP_0.1 { global: _ZN8lockstep1fEv; }; LOCKSTEP_PRIVATE_0.1.0 { global: _ZN8lockstep*; local: *; };"

    def setUp(self):
        self.tree = Tree(self, HEADER)
        (self.tree.root / "cmake/abi/public_symbols.txt").write_text("# a.h\n_ZN8lockstep1fEv\n")

    def library(self, text, exports=MAP):
        """Exit status and output of the check of a library with functions f and g."""
        (self.tree.root / "exports.map").write_text(exports)
        self.compile("liblockstep.so", text, "-fPIC", "-shared", "-Wl,--version-script=exports.map")
        return self.tree.run("exports", self.tree.root / "liblockstep.so")

    def compile(self, out, text, *flags):
        command = ["c++", "-x", "c++", "-", "-o", out, *flags]
        subprocess.run(command, input=text, text=True, cwd=self.tree.root, check=True)

    def test_a_library_has_public_symbols_in_one_version_and_others_in_another(self):
        status, output = self.library("namespace lockstep { void f() {} void g() {} }")
        self.assertEqual(status, 0, output)
        self.assertIn("1 symbols under LOCKSTEP_0.1, 1 under LOCKSTEP_PRIVATE_0.1.0", output)

    def test_a_promise_that_nobody_keeps_fails(self):
        status, output = self.library("namespace lockstep { void g() {} }")
        self.assertEqual(status, 1)
        self.assertIn("defined nowhere", output)

    def test_a_private_symbol_among_public_ones_fails(self):
        status, output = self.library("namespace lockstep { void f() {} void g() {} }",
                                      "LOCKSTEP_0.1 { global: _ZN8lockstep*; local: *; };")
        self.assertEqual(status, 1)
        self.assertIn("lockstep::g()", output)

    def test_programs_that_need_private_symbols_are_named_with_them(self):
        self.library("namespace lockstep { void f() {} void g() {} }")
        for name in "fg":
            text = f"namespace lockstep {{ void {name}(); }} int main() {{ lockstep::{name}(); }}"
            self.compile(name, text, "-xnone", "liblockstep.so")
        self.assertEqual(self.tree.run("needs", self.tree.root / "f")[0], 0)
        status, output = self.tree.run("needs", self.tree.root / "f", self.tree.root / "g")
        self.assertEqual(status, 1)
        self.assertIn("lockstep::g()", output)


class Comparing(unittest.TestCase):
    def setUp(self):
        self.tree = Tree(self, HEADER)
        self.tree.run("symbols")
        self.tree.run("release")

    def changed(self, old, new, version="0.1.1"):
        self.assertIn(old, HEADER)
        self.tree.change(HEADER.replace(old, new), version)
        self.tree.run("symbols")
        return self.tree.run("compare")

    def test_added_functions_are_listed_and_break_nothing(self):
        status, output = self.changed("int added", "int more(int);\nint added")
        self.assertEqual(status, 0, output)
        self.assertIn("1 Added variable", output)

    def test_names_of_members_and_enumerators_at_the_end_break_nothing(self):
        self.assertEqual(self.changed("int width;", "int breadth;")[0], 0)
        self.assertEqual(self.changed("kOne, kTwo", "kOne, kTwo, kThree")[0], 0)

    def test_a_removed_function_breaks_the_abi(self):
        status, output = self.changed("int added(int a, int b);", "")
        self.assertEqual(status, 1, output)
        self.assertIn("1 Removed variable", output)
        self.assertEqual(self.tree.run("kept")[0], 1)

    def test_another_result_breaks_the_abi(self):
        self.assertEqual(self.changed("int added", "Size added")[0], 1)

    def test_a_new_member_breaks_the_abi(self):
        self.assertEqual(self.changed("int height;", "int height; int depth;")[0], 1)

    def test_another_value_of_an_enumerator_breaks_the_abi(self):
        self.assertEqual(self.changed("kOne, kTwo", "kZero, kOne, kTwo")[0], 1)

    def test_another_order_of_virtual_functions_breaks_the_abi(self):
        self.assertEqual(self.changed("virtual Size", "virtual Size bounds() const;\n  virtual Size")[0], 1)

    def test_the_next_minor_version_may_break_the_abi(self):
        status, output = self.changed("int height;", "int height; int depth;", "0.2.0")
        self.assertEqual(status, 0, output)
        self.assertEqual(self.tree.run("kept")[0], 0)


if "Exporting" not in sys.argv and (declared.cindex is None or shutil.which("abidiff") is None):
    print("skipped: python3-clang or abigail-tools is not installed")
    sys.exit(declared.NOT_HERE)
unittest.main()
