// What the library offers to programs that are linked with it.

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

TEST(Exports, AreNamesOfTheNamespaceUnderTheVersionOfTheAbi) {
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
  const std::string mark = "@@LOCKSTEP_" + version.substr(0, version.rfind('.'));
  size_t symbols = 0;
  for (const std::string& name : names) {
    if (name.starts_with("LOCKSTEP_")) continue;  // the version itself
    ASSERT_THAT(name, EndsWith(mark));
    ASSERT_TRUE(name.find("8lockstep") != name.npos || name.starts_with("descriptor_table_configs"))
        << name;
    ++symbols;
  }
  EXPECT_GT(symbols, 1000U);
}

}  // namespace
}  // namespace lockstep
