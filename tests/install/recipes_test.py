"""recipes_test.py SOURCES CMAKE: the recipes for Spack and vcpkg can be read, and name the version, the options and the
libraries of the CMake files. Neither Spack nor vcpkg runs here: what their functions would do is not checked."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest

sources, cmake = pathlib.Path(sys.argv[1]), sys.argv[2]
port = sources / "cmake/package/vcpkg/lockstep"
project = (sources / "CMakeLists.txt").read_text()
version = re.search(r"project\(Lockstep VERSION ([\d.]+)", project)[1]
options = set(re.findall(r"^option\((\w+)", project, re.M)) | set(re.findall(r"^set\((LOCKSTEP_\w+)", project, re.M))
# Names of the libraries in cmake/Dependencies.cmake and Protos.cmake, and in the recipes.
REQUIRED = {
    "fmt": ("fmt", "fmt"),
    "ZLIB": ("zlib-api", "zlib"),
    "LibLZMA": ("xz", "liblzma"),
    "BZip2": ("bzip2", "bzip2"),
    "CLI11": ("cli11", "cli11"),
    "nlohmann_json": ("nlohmann-json", "nlohmann-json"),
    "xxhash": ("xxhash", "xxhash"),
    "utf8proc": ("utf8proc", "utf8proc"),
    "Protobuf": ("protobuf", "protobuf"),
}


def required_libraries():
    text = "".join((sources / "cmake" / name).read_text() for name in ("Dependencies.cmake", "Protos.cmake"))
    found = re.findall(r"^find_package\((\w+)[^)]* REQUIRED", text, re.M)
    found += re.findall(r"^find_package\((\w+) REQUIRED", text, re.M)
    found += re.findall(r"^lockstep_find\(lockstep::(\w+)", text, re.M)
    return set(found) - {"Threads"}


def spack_recipe():
    """What package.py declares: each directive's calls, and the class."""
    said = {}
    module = types.ModuleType("spack.package")

    def directive(name):
        return lambda *args, **kwargs: said.setdefault(name, []).append((args, kwargs))

    for name in ("version", "variant", "depends_on", "requires", "conflicts", "license", "generator"):
        setattr(module, name, directive(name))
    module.CMakePackage = type("CMakePackage", (), {
        "define": lambda self, name, value: f"-D{name}={value}",
        "define_from_variant": lambda self, name, variant: f"-D{name}={variant}",
    })
    module.CudaPackage = type("CudaPackage", (), {})
    module.__all__ = [name for name in vars(module) if not name.startswith("_")]
    sys.modules["spack"], sys.modules["spack.package"] = types.ModuleType("spack"), module
    names = {}
    exec(compile((sources / "cmake/package/spack/packages/lockstep/package.py").read_text(), "package.py", "exec"), names)
    return said, names["Lockstep"]


class Recipes(unittest.TestCase):
    def test_the_libraries_that_the_build_requires_are_known_here(self):
        self.assertEqual(required_libraries(), set(REQUIRED))

    def test_spack(self):
        said, recipe = spack_recipe()
        self.assertEqual([args for args, _ in said["version"]], [(version,)])
        depends = {re.split(r"[@+]", args[0])[0] for args, kwargs in said["depends_on"] if "when" not in kwargs}
        self.assertLessEqual({spack for spack, _ in REQUIRED.values()}, depends)
        variants = {args[0] for args, _ in said["variant"]} | {"cuda"}
        for args, kwargs in said["depends_on"]:
            self.assertIn(kwargs.get("when", "+cuda").lstrip("+"), variants, args)
        package = recipe()
        for cuda in (False, True):
            package.spec = types.SimpleNamespace(
                satisfies=lambda wanted: cuda and wanted == "+cuda",
                variants={"cuda_arch": types.SimpleNamespace(value=("90", "100"))},
            )
            given = dict(re.fullmatch(r"-D(\w+)=(.*)", each).groups() for each in package.cmake_args())
            self.assertLessEqual(set(given), options)
            self.assertEqual(given.get("LOCKSTEP_CUDA_ARCHITECTURES"), "90;100" if cuda else None)

    def test_vcpkg(self):
        manifest = json.loads((port / "vcpkg.json").read_text())
        self.assertEqual(manifest["version"], version)
        names = {each if isinstance(each, str) else each["name"] for each in manifest["dependencies"]}
        self.assertLessEqual({vcpkg for _, vcpkg in REQUIRED.values()}, names)
        self.assertLessEqual(set(manifest["default-features"]), set(manifest["features"]))
        said = run_portfile()
        features = dict(zip(said["vcpkg_check_features"][3::2], said["vcpkg_check_features"][4::2]))
        self.assertEqual(set(features), set(manifest["features"]))
        configured = said["vcpkg_cmake_configure"]
        self.assertEqual(pathlib.Path(configured[configured.index("SOURCE_PATH") + 1]).resolve(), sources.resolve())
        given = {each[2:].split("=")[0] for each in configured if each.startswith("-D")}
        self.assertLessEqual(given | set(features.values()), options)


def run_portfile():
    """The arguments of each vcpkg function that portfile.cmake calls, run by CMake where these only write them down."""
    functions = re.findall(r"^(vcpkg_\w+)\(", (port / "portfile.cmake").read_text(), re.M)
    with tempfile.TemporaryDirectory() as folder:
        script = "".join(
            f'function({name})\nfile(APPEND "{folder}/said" "{name};${{ARGN}}\\n")\nendfunction()\n' for name in functions
        )
        script += f'set(CURRENT_PACKAGES_DIR "{folder}/packages")\ninclude("{port}/portfile.cmake")\n'
        (pathlib.Path(folder) / "run.cmake").write_text(script)
        subprocess.run([cmake, "-P", f"{folder}/run.cmake"], check=True)
        lines = (pathlib.Path(folder) / "said").read_text().splitlines()
    return {line.split(";")[0]: line.split(";")[1:] for line in lines}


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
