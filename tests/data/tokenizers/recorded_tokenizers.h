#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/tokenizers/json_tokenizer.h"

namespace lockstep::train {

/// Checks that JsonTokenizer gives the ids of a file of record_tokenizers.py, and returns how many
/// texts were compared.
inline size_t compare_recorded(const nlohmann::json& recorded) {
  size_t compared = 0;
  for (const nlohmann::json& each : recorded) {
    const JsonTokenizer tokenizer(each.at("tokenizer").dump(), "", each.at("name"));
    size_t wrong = 0;
    for (const nlohmann::json& text : each.at("texts")) {
      const auto spelled = text.at(0).get<std::string>();
      const std::vector<uint32_t> plain = encode(tokenizer, spelled);
      const std::vector<uint32_t> special = encode_special(tokenizer, spelled);
      ++compared;
      if (plain == text.at(1).get<std::vector<uint32_t>>() &&
          special == text.at(2).get<std::vector<uint32_t>>()) {
        continue;
      }
      if (++wrong > 3) continue;
      ADD_FAILURE() << each.at("name") << ": " << text.at(0) << "\n"
                    << text.at(1) << "\n"
                    << nlohmann::json(plain) << "\nwith special tokens\n"
                    << text.at(2) << "\n"
                    << nlohmann::json(special);
    }
    EXPECT_EQ(wrong, 0U) << each.at("name");
  }
  return compared;
}

}  // namespace lockstep::train
