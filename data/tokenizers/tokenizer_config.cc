#include "data/tokenizers/tokenizer_config.h"

#include <nlohmann/json.hpp>

#include "core/base/check.h"

namespace lockstep::train {
namespace {

/// A name in tokenizer_config.json: a text, or an added token with its content.
std::optional<std::string> token_named(const nlohmann::json& config, const char* name) {
  const auto found = config.find(name);
  if (found == config.end()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_object()) return std::nullopt;
  const auto content = found->find("content");
  if (content == found->end() || !content->is_string()) return std::nullopt;
  return content->get<std::string>();
}

}  // namespace

nlohmann::json parse_tokenizer_file(std::string_view text, const std::string& file) {
  try {
    return parse_json(text);
  } catch (const DataError& error) {
    throw DataError(fmt::format("[tokenizer] {}: {}", file, error.what()));
  }
}

TextEnds parse_tokenizer_config(std::string_view text, const std::string& file) {
  const nlohmann::json config = parse_tokenizer_file(text, file);
  if (!config.is_object()) return {};
  return {token_named(config, "bos_token"), token_named(config, "eos_token")};
}

}  // namespace lockstep::train
