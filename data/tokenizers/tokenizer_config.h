#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/parse_json.h"

namespace lockstep::train {

/// Parses the JSON of a tokenizer's file; a DataError names `file`.
nlohmann::json parse_tokenizer_file(std::string_view text, const std::string& file);

/// The tokens that begin and end a text by tokenizer_config.json, which may lack them.
struct TextEnds {
  std::optional<std::string> begin;
  std::optional<std::string> end;
};
TextEnds parse_tokenizer_config(std::string_view text, const std::string& file);

}  // namespace lockstep::train
