// operator_forms ROOT: writes core/ops/forms and core/tensor/methods of the repository at ROOT.
// operator_forms --check ROOT: exits with 1 when they are not what it would write.

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "tests/forms/form_writer.h"

namespace {

using lockstep::forms::Files;

/// The files that are there; others in the two folders are by hand.
std::string current(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

int run(const std::string& root, bool check) {
  int stale = 0;
  for (const auto& [name, text] : lockstep::forms::written_forms(root)) {
    const std::filesystem::path path = std::filesystem::path(root) / name;
    if (current(path) == text) continue;
    ++stale;
    fmt::print("{}\n", name);
    if (check) continue;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream out(path);
    out << text;
    out.close();
    if (!out) throw lockstep::Error(fmt::format("[forms] cannot write {}.", path.string()));
  }
  if (check && stale > 0) {
    fmt::print("{} files are not what the declarations say: run ./dev forms.\n", stale);
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool check = argc == 3 && std::string_view(argv[1]) == "--check";
  if (argc != 2 && !check) {
    fmt::print(stderr, "usage: operator_forms [--check] ROOT\n");
    return 2;
  }
  try {
    return run(argv[argc - 1], check);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
