#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/device/arithmetic_facts.h"

namespace lockstep {

/// Facts as a JSON object of texts, in their order: the form in which ranks exchange them. Bytes
/// that are not UTF-8 are replaced.
std::string format_facts(const std::vector<ArithmeticFact>& facts);

/// The inverse of format_facts. Throws DataError for a text of another form, such as one of a rank
/// that runs another version.
std::vector<ArithmeticFact> parse_facts(std::string_view text);

}  // namespace lockstep
