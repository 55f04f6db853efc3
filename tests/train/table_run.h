#pragma once

#include <fmt/format.h>

#include <string>

#include "tests/data/table_file.h"

namespace lockstep::train {

/// Writes 200 samples of 16 numbers in 4 classes into `folder`. Returns the config text of a run on
/// them.
inline std::string table_data(const TemporaryDirectory& folder) {
  put_table(folder / "table.csv", 200, 16, 4);
  return fmt::format(
      R"(data {{ table {{ path: "{}" scale: 0.1 held_out_rows: 50 }} order: SHUFFLED }} )",
      (folder / "table.csv").string());
}

/// Config text of a classifier with running statistics, for that data. `blocks` is a list.
inline std::string tiny_resnet(const TemporaryDirectory& folder, const std::string& blocks = "1") {
  return fmt::format(
             "model {{ resnet {{ channels: 1 height: 4 width: 4 classes: 4 base_width: 4 "
             "blocks: [{}] }} }} ",
             blocks) +
         table_data(folder);
}

}  // namespace lockstep::train
