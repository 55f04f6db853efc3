#include "core/base/parse_json.h"

#include <nlohmann/json.hpp>

#include "core/base/check.h"
#include "core/base/json_text.h"

namespace lockstep {
namespace {

template <class Json>
Json parsed(std::string_view text, size_t most) {
  LS_CHECK(text.size() <= most, DataError,
           "[json] the text has {} bytes: expected at most {}. Is this the right file?",
           text.size(), most);
  check_json_nesting(text);
  try {
    return Json::parse(text);
  } catch (const typename Json::parse_error& error) {
    throw JsonSyntaxError(error.byte);
  } catch (const typename Json::out_of_range& error) {  // a number beyond double
    throw DataError(fmt::format("[json] {}.", error.what()));
  }
}

}  // namespace

JsonSyntaxError::JsonSyntaxError(size_t byte)
    : DataError(fmt::format("[json] not valid JSON from byte {} on. Is the file whole?", byte)),
      byte_(byte) {}

nlohmann::json parse_json(std::string_view text, size_t most) {
  return parsed<nlohmann::json>(text, most);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, size_t most) {
  return parsed<nlohmann::ordered_json>(text, most);
}

}  // namespace lockstep
