#include "core/device/facts_text.h"

#include <nlohmann/json.hpp>

#include "core/base/check.h"
#include "core/base/parse_json.h"

namespace lockstep {

using Json = nlohmann::ordered_json;

std::string format_facts(const std::vector<ArithmeticFact>& facts) {
  Json json = Json::object();
  for (const ArithmeticFact& fact : facts) json[fact.name] = fact.value;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<ArithmeticFact> parse_facts(std::string_view text) {
  const Json json = parse_ordered_json(text);
  LS_CHECK(json.is_object(), DataError, "[facts] expected an object of texts, got {:.80}.",
           json.dump());
  std::vector<ArithmeticFact> facts;
  for (const auto& [name, value] : json.items()) {
    LS_CHECK(value.is_string(), DataError, "[facts] {:?}: expected a text, got {:.80}.", name,
             value.dump());
    facts.push_back({name, value.get<std::string>()});
  }
  return facts;
}

}  // namespace lockstep
