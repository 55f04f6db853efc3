#pragma once

#include <fmt/format.h>

#include <string>

#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {

/// Writes `rows` samples of `features` numbers in separable classes: feature i of a sample of class
/// c is large if i mod `classes` equals c.
inline void put_table(const std::filesystem::path& path, int rows, int features, int classes) {
  std::string text;
  for (int row = 0; row < rows; ++row) {
    const int label = row * 7 % classes;
    for (int i = 0; i < features; ++i) {
      const int noise = (row * 31 + i * 17) % 5;
      text += fmt::format("{},", (i % classes == label ? 10 : 0) + noise);
    }
    text += fmt::format("{}\n", label);
  }
  put_file(path, text);
}

}  // namespace lockstep::train
