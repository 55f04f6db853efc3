// What the library offers to programs that are linked with it. Which names are public is checked by
// tests/abi.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/core/base/loaded_library.h"

namespace lockstep {
namespace {

using testing::AnyOf;
using testing::EndsWith;

/// The symbols that it exports, as `nm` prints them: "NAME@@VERSION"; empty without nm.
std::vector<std::string> exported(const std::string& path) {
  const std::string command = "nm --dynamic --defined-only '" + path + "' 2>/dev/null";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> output(popen(command.c_str(), "r"), pclose);
  std::vector<std::string> names;
  char line[1 << 14];
  while (output != nullptr && std::fgets(line, sizeof line, output.get()) != nullptr) {
    std::istringstream words(line);
    std::string address, kind, name;
    words >> address >> kind >> name;
    names.push_back(name);
  }
  return names;
}

TEST(Exports, AreNamesOfTheNamespaceUnderTheVersionsOfTheAbiAndOfTheLibrary) {
  std::string path;
  const bool is_loaded =
      look_at_library("liblockstep.so", [&](const dl_phdr_info& info) { path = info.dlpi_name; });
  if (!is_loaded) GTEST_SKIP() << "the library is linked statically";
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's library exports what it looks at";
#endif
  const std::vector<std::string> names = exported(path);
  if (names.empty()) GTEST_SKIP() << "nm is not installed";
  const std::string version = LOCKSTEP_VERSION;
  const std::string of_abi = "@@LOCKSTEP_" + version.substr(0, version.rfind('.'));
  const std::string of_library = "@@LOCKSTEP_PRIVATE_" + version;
  size_t promised = 0;
  for (const std::string& name : names) {
    if (name.starts_with("LOCKSTEP_")) continue;  // a version itself
    ASSERT_THAT(name, AnyOf(EndsWith(of_abi), EndsWith(of_library)));
    ASSERT_TRUE(name.find("8lockstep") != name.npos || name.starts_with("descriptor_table_configs"))
        << name;
    promised += name.ends_with(of_abi) ? 1 : 0;
  }
  EXPECT_GT(promised, 1000U);
  EXPECT_LT(promised, names.size() / 2);
}

}  // namespace
}  // namespace lockstep
