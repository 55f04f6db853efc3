#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {

/// Expects that Python's XML parser accepts `text`. Skips the test where there is no Python.
inline void expect_well_formed_xml(const std::string& text) {
  if (std::system("python3 -c 'import xml.dom.minidom' > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "no python3";
  }
  const TemporaryDirectory folder;
  put_file(folder / "a.xml", text);
  const std::string command =
      "python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' " +
      (folder / "a.xml").string();
  EXPECT_EQ(std::system(command.c_str()), 0) << text;
}

}  // namespace lockstep::train
